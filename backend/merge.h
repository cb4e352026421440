/* SPDX-License-Identifier: MIT */
/*
 * The format of the merged index: pure functions on bytes. Private to the spool.
 *
 * File `merged`: a head of MERGE_HEAD bytes, then records of MERGE_RECORD bytes. A record stands
 * for LENGTH bytes at OFFSET of one log; END is where its rendering ends in the merged log, which
 * is also where the next one begins. The records of one log are contiguous, from its first byte.
 * File `merged.keys`: one line a log, "KEY\tPREFIX\n"; a log's number is that of its line, from 0.
 *
 * The rendering of a record: a newline (MERGE_NEWLINE), then its bytes, with the log's prefix
 * before the first one (MERGE_START), after each '\n', and after each '\r' that no '\n' follows.
 */
#ifndef KXFS_BACKEND_MERGE_H
#define KXFS_BACKEND_MERGE_H

#include "spec/base.h"

#define MERGE_HEAD	 16
#define MERGE_RECORD	 32
#define MERGE_LENGTH_MAX 65536 /* bytes of a log in one record; a longer line is taken in pieces */
#define MERGE_PREFIX_MAX 512

#define MERGE_NEWLINE 1u /* the record before ends in the middle of a line, and this is another's */
#define MERGE_START   2u /* its first byte begins a line */
#define MERGE_ENDS    4u /* it ends with '\n': whatever follows begins a line */
#define MERGE_CR      8u /* it ends with '\r' */

struct merge_record {
	uint64_t end;
	uint64_t offset;
	uint32_t length;
	uint32_t log;
	uint32_t flags;
};

struct merge_key {
	char *key;
	char *prefix;
	uint64_t indexed; /* bytes of the log that the records before hold */
};

struct merge_keys {
	struct merge_key *v;
	size_t n;
};

void merge_head(uint8_t ret[MERGE_HEAD]);
bool merge_head_is_valid(const uint8_t head[MERGE_HEAD]);

/* NUMBER is the record's position, from 0: a record in a wrong place is not valid. */
void merge_encode(const struct merge_record *r, uint64_t number, uint8_t ret[MERGE_RECORD]);
/* 0; -EINVAL: these bytes are no record. */
int merge_decode(const uint8_t bytes[MERGE_RECORD], uint64_t number, struct merge_record *ret);

/*
 * May R follow LAST (NULL: it is the first)? Counts it in KEYS. -EINVAL: no. Bytes from a disk may be
 * anything; what passes can be rendered in bounded time and space.
 */
int merge_follow(struct merge_keys *keys, const struct merge_record *last,
		 const struct merge_record *r);

/*
 * Read lines of `merged.keys`, and append them to KEYS. *RET_LEN is the length of the whole, valid
 * lines; what follows them is torn. -ENOMEM.
 */
int merge_keys_parse(struct merge_keys *keys, const char *text, size_t len, size_t *ret_len);
int merge_keys_add(struct merge_keys *keys, const char *key, const char *prefix);
void merge_keys_clear(struct merge_keys *keys);
/* May these stand in `merged.keys`? */
bool merge_key_is_valid(const char *key, const char *prefix);

/*
 * How many of the N bytes at BUF, the next ones of log, are the next record: whole lines; else, if the
 * line is longer than a record, a piece of it; if no byte will follow (FINAL), all; up to the last
 * '\r' that no '\n' follows, as a progress bar prints it. 0: wait for more.
 */
size_t merge_cut(const char *buf, size_t n, bool final);

/* The record after LAST (NULL: none) for LENGTH > 0 bytes at BUF, at OFFSET of log LOG. */
struct merge_record merge_next(const struct merge_record *last, uint32_t log, uint64_t offset,
			       const char *buf, size_t length, size_t prefix_len);

/*
 * Write the bytes from SKIP on of the rendering of R, which begins at BASE, to OUT, at most N. BUF holds
 * HAVE bytes of the log (fewer than R->length if the disk has lost some: zeros stand for them, so that
 * what follows stays where it is). Returns the number written.
 */
size_t merge_render(const struct merge_record *r, uint64_t base, const char *prefix,
		    const char *buf, size_t have, uint64_t skip, char *out, size_t n);

#endif
