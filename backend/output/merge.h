/* SPDX-License-Identifier: MIT */
/*
 * The format of the merged index: pure functions on bytes. Private to the folder.
 *
 * The file `merged` has a head of MERGE_HEAD bytes, then records of MERGE_RECORD bytes. A record
 * refers to LENGTH bytes at OFFSET of one log. END is the offset in the merged log at which the
 * rendering of the record ends. STAMPS is the number of lines that begin before END. The records of
 * a log refer to its bytes in order, without gaps, from the log's first byte on. The file
 * `merged.keys` has one line for each log, "KEY\tPREFIX\n". The number of a log is the number of
 * its line, from 0.
 *
 * The rendering of a record begins with a newline if MERGE_NEWLINE is set. Then the bytes of the
 * record follow. The log's prefix is inserted before the first byte if MERGE_START is set. It is
 * also inserted after each '\n', and after each '\r' that is not followed by '\n', if more bytes of
 * the record follow. In the stamped form, a stamp of STAMP bytes is inserted before the first
 * prefix if MERGE_LINE is set, and before each prefix after '\n'.
 */
#pragma once

#include "backend/output/chunk.h"
#include "backend/output/stamp.h"

#define MERGE_HEAD	 16
#define MERGE_RECORD	 40
#define MERGE_LENGTH_MAX CHUNK_MAX
#define MERGE_PREFIX_MAX 512

/* Flags of a record. NEWLINE: it does not continue the incomplete line that precedes it. */
#define MERGE_NEWLINE 1u
#define MERGE_START   2u  /* the first byte gets a prefix */
#define MERGE_ENDS    4u  /* the last byte is '\n', so the next byte begins a line */
#define MERGE_CR      8u  /* the last byte is '\r' */
#define MERGE_LINE    16u /* the first byte begins a line, and gets a stamp */

/* Plain data. */
struct merge_record {
	uint64_t end;
	uint64_t offset;
	uint64_t stamps;
	uint32_t length;
	uint32_t log;
	uint32_t flags;
};

/* Plain data. */
struct merge_key {
	char *key;
	char *prefix;
	uint32_t number;
	uint64_t indexed; /* bytes of the log in the index */
	uint64_t size;	  /* of the log when the index was loaded */
};

struct merge_keys {
	struct merge_key **v; /* by number */
	size_t n;
};

extern const uint8_t merge_head[MERGE_HEAD];
/* For the first record of an index, pass this as LAST to merge_follow and merge_next. */
extern const struct merge_record merge_start;

/* NUMBER is the position in the index, from 0. A record at another position is not valid. */
void merge_encode(const struct merge_record *r, uint64_t number, uint8_t ret[MERGE_RECORD]);
/* Return 0, or -EINVAL if BYTES is not a valid record at the position NUMBER. */
int merge_decode(const uint8_t bytes[MERGE_RECORD], uint64_t number, struct merge_record *ret);

/*
 * If R may follow LAST, add R's length to INDEXED of R's log, and return 0. Otherwise return
 * -EINVAL. Bytes from a disk are untrusted, but a record that passes this check can be rendered in
 * bounded time and space.
 */
int merge_follow(struct merge_keys *keys, const struct merge_record *last,
		 const struct merge_record *r);

/* Append the keys in TEXT (`merged.keys`) up to an invalid line. Return the valid lines' length. */
size_t merge_keys_parse(struct merge_keys *keys, const char *text, size_t len);
/* Append a new key, and return it. The key remains valid until merge_keys_clear. */
struct merge_key *merge_keys_add(struct merge_keys *keys, const char *key, const char *prefix);
void merge_keys_clear(struct merge_keys *keys);
bool merge_key_is_valid(const char *key, const char *prefix);

/* Return the record for chunk P of log LOG. This record follows LAST. */
struct merge_record merge_next(const struct merge_record *last, uint32_t log, const struct chunk *p,
			       size_t prefix_len);

/* How to render a record: with PREFIX and, if STAMP is not NULL, with stamps. */
struct merge_style {
	const char *prefix;
	stamp_fn stamp;
	void *data;
};

/*
 * Write at most N bytes of the rendering of R to OUT, from byte SKIP of the rendering on. The whole
 * rendering has TOTAL bytes. BUF has the first HAVE bytes of R's part of the log. Return the number
 * of bytes written, which is lower than N if HAVE is too small.
 */
size_t merge_render(const struct merge_record *r, uint64_t total, const struct merge_style *style,
		    const char *buf, size_t have, uint64_t skip, char *out, size_t n);
