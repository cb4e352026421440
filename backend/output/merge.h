/* SPDX-License-Identifier: MIT */
/*
 * The format of the merged index: pure functions on bytes. Private to the folder.
 *
 * File `merged`: a head of MERGE_HEAD bytes, then records of MERGE_RECORD bytes. A record
 * represents LENGTH bytes at OFFSET of one log; END is where its rendering ends in the merged log,
 * which is also where the next one begins, and STAMPS is the number of lines that begin before
 * that. The records of one log are contiguous, from its first byte. File `merged.keys`: one line a
 * log, "KEY\tPREFIX\n"; a log's number is that of its line, from 0.
 *
 * The rendering of a record is a newline (MERGE_NEWLINE), then its bytes, with the log's prefix
 * before the first byte (MERGE_START), after each '\n', and after each '\r' that is not followed by
 * '\n'. In the stamped form a stamp of STAMP bytes precedes the first prefix (MERGE_LINE), and each
 * that follows '\n'.
 */
#pragma once

#include "backend/output/chunk.h"
#include "backend/output/stamp.h"

#define MERGE_HEAD	 16
#define MERGE_RECORD	 40
#define MERGE_LENGTH_MAX CHUNK_MAX
#define MERGE_PREFIX_MAX 512

/* The record before it ends in the middle of a line, which this one does not continue. */
#define MERGE_NEWLINE 1u
#define MERGE_START   2u  /* its first byte gets a prefix */
#define MERGE_ENDS    4u  /* the record ends with '\n', so the next byte begins a line */
#define MERGE_CR      8u  /* the record ends with '\r' */
#define MERGE_LINE    16u /* its first byte begins a line, and gets a stamp */

/* Plain data. */
struct merge_record {
	uint64_t end;
	uint64_t offset;
	uint64_t stamps;
	uint32_t length;
	uint32_t log;
	uint32_t flags;
};

/* A log, and how much of it is in the index. Plain data. */
struct merge_key {
	char *key;
	char *prefix;
	uint64_t indexed; /* bytes of the log in the earlier records */
};

struct merge_keys {
	struct merge_key *v;
	size_t n;
};

/* The head with which each index begins. */
extern const uint8_t merge_head[MERGE_HEAD];
/* Initial values, as if a record came before the first one. */
extern const struct merge_record merge_start;

/* NUMBER is the record's position, from 0: a record at a wrong position is not valid. */
void merge_encode(const struct merge_record *r, uint64_t number, uint8_t ret[MERGE_RECORD]);
/* Return 0, or -EINVAL if these bytes are not a record. */
int merge_decode(const uint8_t bytes[MERGE_RECORD], uint64_t number, struct merge_record *ret);

/*
 * Check if R may follow LAST, and count R in KEYS. -EINVAL if it may not. Bytes from a disk are
 * untrusted; but a record that passes this check can be rendered in bounded time and space.
 */
int merge_follow(struct merge_keys *keys, const struct merge_record *last,
		 const struct merge_record *r);

/*
 * Read lines of `merged.keys`, and append them to KEYS. Return the length of the whole, valid
 * lines; the bytes after them are torn.
 */
size_t merge_keys_parse(struct merge_keys *keys, const char *text, size_t len);
void merge_keys_add(struct merge_keys *keys, const char *key, const char *prefix);
void merge_keys_clear(struct merge_keys *keys);
/* True if KEY and PREFIX are valid in `merged.keys`. */
bool merge_key_is_valid(const char *key, const char *prefix);

/* Return the record that follows LAST, for chunk P of log LOG. */
struct merge_record merge_next(const struct merge_record *last, uint32_t log, const struct chunk *p,
			       size_t prefix_len);

/* How a record is rendered: its prefix, and its stamps (or NULL). */
struct merge_style {
	const char *prefix;
	stamp_fn stamp;
	void *data;
};

/*
 * Write to OUT at most N bytes of the rendering of R, which has TOTAL bytes, from byte SKIP on. BUF
 * has HAVE bytes of the log. Return the number of bytes written: fewer than fit if HAVE bytes are
 * not enough.
 */
size_t merge_render(const struct merge_record *r, uint64_t total, const struct merge_style *style,
		    const char *buf, size_t have, uint64_t skip, char *out, size_t n);
