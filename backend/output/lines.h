/* SPDX-License-Identifier: MIT */
/*
 * The table of lines beside a log (STATE/output/ID/lines/KEY). The table records where lines begin,
 * when they were printed, and which numbers they have. kxfs keeps the table as long as the log. The
 * writer of the log also writes the table, and writes it before the log's bytes. If the writer is
 * killed in between, the table has records of bytes that the log does not have; lines_mend removes
 * such records.
 *
 * The file is a sequence of blocks of LINES_BLOCK bytes. The last block may be shorter. Each block
 * begins with a whole record (at, ns, number: 8 bytes each, little-endian). Each further record has
 * the differences to the record before it (at: varint, ns: zigzag varint, number: varint). A byte 0
 * in place of a record ends the block early. Because each block begins with a whole record, a
 * record is found by bisection over the blocks, and the end is read without the rest.
 *
 * Successive lines that have the same time, or whose time is unknown, share one record: the record
 * of the first of these lines. But if a line begins LINES_SPAN bytes or more after the last
 * record's line, this line gets a record of its own. So the bytes between two records can be
 * searched in bounded time.
 *
 * A line is a run of bytes that ends with '\n'. The last line may lack the '\n', because it is not
 * complete yet. Any thread of any process may call these functions.
 */
#pragma once

#include "spec/logline/logline.h"

#define LINES_BLOCK	4096
#define LINES_SPAN	(64u << 10)
#define LINES_ADDED_MAX 64 /* the largest result of lines_add */

struct lines_record {
	struct spec_line line;
	uint64_t number; /* number of the line, from 0 */
};

/* The state of a writer of a table. Plain data; all 0 for an empty log. */
struct lines_encoder {
	uint64_t size;		  /* size of the log, including the added bytes */
	uint64_t lines;		  /* lines that begin in these bytes */
	bool midline;		  /* true if the last line is not complete yet */
	bool any;		  /* true if the table has at least one record */
	struct lines_record last; /* the newest record */
	uint64_t table;		  /* size of the table in bytes */
};

/*
 * Add N bytes (0 < N <= LINES_SPAN) that were printed at NS. Set RET to the bytes that the caller
 * must append to the table. Return the number of bytes in RET, which may be 0. The caller first
 * appends these bytes to the table, and then the N bytes to the log.
 */
size_t lines_add(struct lines_encoder *e, int64_t ns, const char *bytes, size_t n,
		 uint8_t ret[LINES_ADDED_MAX]);
/*
 * Like lines_add, but for any N > 0 bytes of one line. If WHOLE, the last byte is '\n'. No other
 * byte may be '\n'.
 */
size_t lines_add_line(struct lines_encoder *e, int64_t ns, size_t n, bool whole,
		      uint8_t ret[LINES_ADDED_MAX]);

/*
 * Make the table FD match the log LOG_FD, which has SIZE bytes. Remove records that are incomplete,
 * or that are of bytes that the log does not have. Then read the log from the table's last line on,
 * and add records of unknown time for the lines that follow. FD must be open for reading and
 * writing. Set *RET to the state with which a writer continues the table. Return 0, or a negative
 * errno if the table can't be used now.
 */
int lines_mend(int fd, int log_fd, uint64_t size, struct lines_encoder *ret);

/* A reader of a table, which may be growing. */
struct lines_reader {
	int fd; /* the caller owns it */
	uint64_t block;
	size_t n;  /* bytes of the block that are in BYTES */
	size_t at; /* offset in BYTES of the next record */
	struct lines_record last;
	uint8_t bytes[LINES_BLOCK];
};

void lines_open(struct lines_reader *r, int fd);
/*
 * Find the last record for which line.at + WEIGHT * number <= PLACE. If WEIGHT is 0, the result is
 * the record of the line that contains byte PLACE, or of an earlier line. Return -ENOENT if there
 * is no such record, or another negative errno.
 */
int lines_find(struct lines_reader *r, uint64_t weight, uint64_t place, struct lines_record *ret);
/*
 * Set *RET to the next record: the one after the record that lines_find or lines_next returned
 * last. Return -ENOENT if there is no next record yet. If a record is implausible, the table ends
 * before it.
 */
int lines_next(struct lines_reader *r, struct lines_record *ret);

/* Return the number of '\n' among the N bytes at P. */
size_t lines_count(const char *p, size_t n);
