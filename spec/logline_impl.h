/* SPDX-License-Identifier: MIT */
/* What logline.c (streams) and logline_state.c (hashes, the state as text) share. Private to them. */
#ifndef KXFS_SPEC_LOGLINE_IMPL_H
#define KXFS_SPEC_LOGLINE_IMPL_H

#include "spec/logline.h"

#define LOGLINE_SECOND 1000000000
#define LOGLINE_MARKS  8   /* seconds from which on a stream can be asked for */
#define LOGLINE_RING   128 /* last lines by which a stream that begins later is recognised */
#define LOGLINE_BAD    16
#define LOGLINE_PREFIX 48 /* bytes of a time; what is longer is none */
#define LOGLINE_TEXT   512
#define LOGLINE_ENTRY  16384 /* bytes in which the runtime cuts a line */

/* A line of the output. */
struct logline_start {
	int64_t ns;
	uint64_t at;   /* bytes of output before it */
	uint64_t hash; /* of those */
};

struct spec_logline {
	/* What is known: */
	uint64_t size;
	uint64_t hash;
	int64_t last_ns;    /* of the last line */
	int64_t max_second; /* of all lines */
	struct logline_start first;
	struct logline_start marks[LOGLINE_MARKS]; /* by time, and by place */
	size_t n_marks;
	struct logline_start ring[LOGLINE_RING];
	uint64_t n_lines; /* of which the ring has the last; 0: only bytes are known */
	unsigned gaps;
	bool plain; /* a line went on past LOGLINE_ENTRY without a time there */

	/* The present stream: */
	enum { LOGLINE_SEARCH, LOGLINE_CHECK, LOGLINE_NEW } mode;
	enum {
		LOGLINE_BEFORE,
		LOGLINE_CONTENT,
		LOGLINE_MIDDLE, /* after LOGLINE_ENTRY bytes: there may be a time */
		LOGLINE_OTHER
	} place;      /* in a line */
	size_t entry; /* bytes of content since its time, if not plain */
	bool force;
	char prefix[LOGLINE_PREFIX];
	size_t n_prefix;
	int64_t line_ns;
	bool line_noted;
	uint64_t body_lines;
	uint64_t from, left, check, want; /* CHECK: since where, how many bytes more; hashes */
	char text[LOGLINE_TEXT];
	size_t n_text;

	uint64_t bad[LOGLINE_BAD]; /* lines from which on streams were not what is known */
	size_t n_bad;
};

/* The hash of what HASH is of, followed by BYTES; 0 is that of nothing. */
uint64_t logline_hash(uint64_t hash, const char *bytes, size_t n);
/* The hash of the last N bytes of what WHOLE is of, if BEFORE is that of those before them. */
uint64_t logline_hash_between(uint64_t before, uint64_t whole, uint64_t n);

#endif
