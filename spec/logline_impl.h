/* SPDX-License-Identifier: MIT */
/*
 * What logline.c (streams), logline_match.c (finding what is known in them), logline_known.c (what is known) and
 * logline_state.c (hashes, the state as it is kept) share. Private to them.
 */
#ifndef KXFS_SPEC_LOGLINE_IMPL_H
#define KXFS_SPEC_LOGLINE_IMPL_H

#include "spec/logline.h"

#define LOGLINE_SECOND 1000000000
#define LOGLINE_MARKS  8   /* seconds from which on a stream can be asked for */
#define LOGLINE_RING   128 /* last lines by which a stream that begins later is recognised */
#define LOGLINE_PREFIX 48  /* bytes of a time; what is longer is none */
#define LOGLINE_TEXT   512
#define LOGLINE_ENTRY  16384 /* bytes in which the runtime cuts a line */
/* The time of a line of which only the bytes were kept. */
#define LOGLINE_UNTIMED INT64_C(-1)

struct logline_match;

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
	int64_t last_ns;    /* of the last line whose time is known */
	int64_t max_second; /* of all those */
	uint64_t untimed;   /* of the last so many bytes no line's time is known */
	struct logline_start first;
	struct logline_start marks[LOGLINE_MARKS]; /* by time, and by place */
	size_t n_marks;
	struct logline_start ring[LOGLINE_RING];
	uint64_t n_lines; /* of which the ring has the last */
	unsigned gaps;
	bool midline;	  /* it does not end with the end of a line */
	bool plain;	  /* a line went on past LOGLINE_ENTRY without a time there */
	uint64_t n_saved; /* times */

	/* The present stream: */
	struct logline_match *match; /* NULL: no line has begun yet, or what comes is new */
	uint64_t asked_at;	     /* the known byte from whose second on it was asked for */
	enum {
		LOGLINE_BEFORE,
		LOGLINE_CONTENT,
		LOGLINE_MIDDLE, /* after LOGLINE_ENTRY bytes: there may be a time */
		LOGLINE_OTHER
	} place;     /* in a line */
	bool is_new; /* what comes */
	bool force;
	bool line_noted;
	size_t entry; /* bytes of content since its time, if not plain */
	char prefix[LOGLINE_PREFIX];
	size_t n_prefix;
	int64_t line_ns;
	uint64_t body_lines;
	char text[LOGLINE_TEXT];
	size_t n_text;

	/* Since something new came, of the streams before it: */
	uint64_t ask_below;	  /* streams from here on were of no use, ask for more */
	uint64_t end_n, end_hash; /* where the last one ended */
	uint64_t held_hash;	  /* of one that ended within what may be a time, with that */
	/* So many places that seemed right, and better than the right one, were not. */
	unsigned doubts;
	bool blind; /* it is not there at all: if forced, what is newer is taken without a look */
};

/* --- logline_match.c: find in a stream where that ends which is known --- */

/* What a line, or bytes, of a stream mean; or a negative errno: as spec_logline_feed. */
enum {
	LOGLINE_KNOWN = 0, /* it is known, or may be */
	LOGLINE_NEW = 1,   /* all that is known was before this line; or ends with these bytes */
	LOGLINE_GAP = 2,   /* this line is new, but what is known was not there */
};

/* A line of time NS begins, or a part of one that the runtime has cut. */
int logline_match_line(struct spec_logline *l, int64_t ns);
/* How many of the next N bytes can be looked at at once. */
size_t logline_match_most(const struct spec_logline *l, size_t n);
/* So many bytes of a line. */
int logline_match_bytes(struct spec_logline *l, const char *bytes, size_t n);
/* The stream has ended properly. 0, or as spec_logline_end. */
int logline_match_end(struct spec_logline *l);

/* --- logline_known.c --- */

static inline int64_t logline_second(int64_t ns)
{
	return ns / LOGLINE_SECOND;
}

/* A line of time NS begins at the end of what is known; bytes of it are appended next. */
void logline_note_line(struct spec_logline *l, int64_t ns);
/* N bytes, at least one, are known now too. */
void logline_append(struct spec_logline *l, const char *bytes, size_t n);
/*
 * Of what L knows only the first SIZE bytes are there. It knows a beginning of them then, up to where a line
 * began, or nothing.
 */
void logline_cut(struct spec_logline *l, uint64_t size);

/* --- logline_state.c --- */

/* Make what is in this slot count as undamaged, whatever it is. */
void logline_sign(char *slot);

/* The hash of what HASH is of, followed by BYTES; 0 is that of nothing. */
uint64_t logline_hash(uint64_t hash, const char *bytes, size_t n);
/* The hash of the last N bytes of what WHOLE is of, if BEFORE is that of those before them. */
uint64_t logline_hash_between(uint64_t before, uint64_t whole, uint64_t n);

#endif
