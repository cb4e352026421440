/* SPDX-License-Identifier: MIT */
/*
 * The table of lines beside a log (STATE/output/ID/lines/KEY): where lines begin, when they were
 * printed, and their numbers. The log's writer also writes the table, before the log's bytes. If
 * the writer is killed in between, lines_mend removes the records of missing bytes.
 *
 * The file is a sequence of blocks of LINES_BLOCK bytes. The last block may be shorter. Each block
 * begins with a whole record (at, ns, number: 8 bytes each, little-endian). Each further record has
 * the differences to the record before it (at: varint, ns: zigzag varint, number: varint). A byte 0
 * in place of a record ends the block early. Since each block begins with a whole record, a reader
 * can find a record by bisection over the blocks.
 *
 * Successive lines that have the same time, or whose time is unknown, share the record of the first
 * of them. But a line that begins LINES_SPAN bytes or more after the last record's line has its own
 * record, so that the bytes between two records can be searched in bounded time.
 *
 * A line ends with '\n'. The last line may be incomplete. Any thread of any process may call these
 * functions.
 */
#pragma once

#include "spec/logline/logline.h"

#define LINES_BLOCK	4096
#define LINES_SPAN	(64u << 10)
#define LINES_ADDED_MAX 64 /* largest result of lines_add */

struct lines_record {
	struct spec_line line;
	uint64_t number; /* of the line in the log, from 0 */
};

/* The state of a table's writer. Plain data; all 0 for an empty log. */
struct lines_encoder {
	uint64_t size;		  /* of the log, with the added bytes */
	uint64_t lines;		  /* lines that begin in these bytes */
	bool midline;		  /* the last line is incomplete */
	bool any;		  /* the table has a record */
	struct lines_record last; /* the newest record */
	uint64_t table;		  /* bytes of the table */
};

/*
 * Add N bytes (0 < N <= LINES_SPAN) that were printed at NS. Return the number of bytes in RET,
 * which the caller appends to the table before it appends the N bytes to the log.
 */
size_t lines_add(struct lines_encoder *e, int64_t ns, const char *bytes, size_t n,
		 uint8_t ret[LINES_ADDED_MAX]);
/* Like lines_add, for any N > 0 bytes of one line. If WHOLE, they end with the line's '\n'. */
size_t lines_add_line(struct lines_encoder *e, int64_t ns, size_t n, bool whole,
		      uint8_t ret[LINES_ADDED_MAX]);

/*
 * Make the table FD match the log LOG_FD, which has SIZE bytes. Remove records that are incomplete,
 * or that describe missing bytes. Then add records of unknown time for the lines after the table's
 * last line. FD must be open for reading and writing. Set *RET to the state with which a writer
 * continues. Return 0, or a negative errno if the table can't be used now.
 */
int lines_mend(int fd, int log_fd, uint64_t size, struct lines_encoder *ret);

/* A reader of a table, which may be growing. */
struct lines_reader {
	int fd; /* borrowed */
	uint64_t block;
	size_t n;  /* bytes in BYTES */
	size_t at; /* offset in BYTES of the next record */
	struct lines_record last;
	uint8_t bytes[LINES_BLOCK];
};

void lines_open(struct lines_reader *r, int fd);
/*
 * PLACE is an offset in the form of the log that has WEIGHT additional bytes before each line. Find
 * the last record whose line begins at or before PLACE: line.at + WEIGHT * number <= PLACE. Return
 * 0, -ENOENT if there is no such record, or another negative errno.
 */
int lines_find(struct lines_reader *r, uint64_t weight, uint64_t place, struct lines_record *ret);
/*
 * Set *RET to the record after the last result of lines_find or lines_next. Return -ENOENT if there
 * is no next record yet. An implausible record ends the table.
 */
int lines_next(struct lines_reader *r, struct lines_record *ret);

/* Return the number of '\n' among the N bytes at P. */
size_t lines_count(const char *p, size_t n);
