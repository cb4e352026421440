/* SPDX-License-Identifier: MIT */
/*
 * The table of lines beside a log (STATE/jobs/ID/lines/KEY): where lines begin, when they were
 * printed, and their numbers. It is kept as long as the log. The writer of the log also writes it,
 * before the log's bytes, so that a kill in between leaves a table with records of missing bytes;
 * lines_mend removes those.
 *
 * The file is a sequence of blocks of LINES_BLOCK bytes; the last may be shorter. Each block begins
 * with a whole record (at, ns, number: 8 bytes each, little-endian); each further record has the
 * differences to the one before it (at: varint, ns: zigzag varint, number: varint). A byte 0 where
 * a record would begin ends a block early. So a record is found by bisection over the blocks, and
 * the tail can be read without the rest. There is one record for the first line of each time:
 * following lines with the same time, or of unknown time, share this record. But there is at least
 * one record each LINES_SPAN bytes, if a line begins there, so the bytes between two records can be
 * searched in bounded time.
 *
 * A line is a run of bytes that ends with '\n', or the last one, which is not complete yet. The
 * functions are for any thread of any process.
 */
#pragma once

#include "spec/base/base.h"

#define LINES_BLOCK	4096
#define LINES_SPAN	(64u << 10)
#define LINES_ADDED_MAX 64 /* the largest result of lines_add */

/* A line of a log: it begins at byte AT and has the time NS since 1970, or 0 if unknown. */
struct log_line {
	uint64_t at;
	int64_t ns;
};

struct lines_record {
	struct log_line line;
	uint64_t number; /* number of the line, from 0 */
};

/* The state needed to continue a table. Plain data; all 0 for an empty log. */
struct lines_encoder {
	uint64_t size;		  /* bytes of the log, including all that were added */
	uint64_t lines;		  /* lines that begin in these bytes */
	bool midline;		  /* the last line is not complete yet */
	bool any;		  /* there is a record */
	struct lines_record last; /* the newest record */
	uint64_t table;		  /* bytes of the table */
};

/*
 * Add N bytes, 0 < N <= LINES_SPAN, printed at NS, which will be appended to the log. Write the
 * bytes to append to the table before that to RET, and return their number, which may be 0.
 */
size_t lines_add(struct lines_encoder *e, int64_t ns, const char *bytes, size_t n,
		 uint8_t ret[LINES_ADDED_MAX]);
/* Like lines_add, for any N > 0 bytes of one line. WHOLE: the last of them, and no other, is a '\n'. */
size_t lines_add_line(struct lines_encoder *e, int64_t ns, size_t n, bool whole,
		      uint8_t ret[LINES_ADDED_MAX]);

/*
 * Make the table FD (open for reading and writing) match the log LOG_FD, which has SIZE bytes:
 * remove its torn end and records of missing bytes, and add records of lines of unknown time for
 * bytes without a record. *RET continues the table. Return 0, or a negative errno if there can be
 * no table now. Reads the log from the last line of the table on.
 */
int lines_mend(int fd, int log_fd, uint64_t size, struct lines_encoder *ret);

/* A reader of a table, which may be growing. */
struct lines_reader {
	int fd; /* the caller's */
	uint64_t block;
	size_t n;  /* bytes of the block that are in BYTES */
	size_t at; /* offset in BYTES of the next record */
	struct lines_record last;
	uint8_t bytes[LINES_BLOCK];
};

void lines_open(struct lines_reader *r, int fd);
/*
 * Find the last record with line.at + WEIGHT * number <= PLACE. If WEIGHT is 0, this is the record
 * of the line that contains byte PLACE, or of an earlier line. Return -ENOENT if there is none, or
 * another negative errno.
 */
int lines_find(struct lines_reader *r, uint64_t weight, uint64_t place, struct lines_record *ret);
/*
 * Set *RET to the record after the one that lines_find or lines_next returned last. Return -ENOENT
 * if there is none yet. An implausible record ends the table.
 */
int lines_next(struct lines_reader *r, struct lines_record *ret);

/* Return the number of '\n' among the N bytes at P. */
size_t lines_count(const char *p, size_t n);
