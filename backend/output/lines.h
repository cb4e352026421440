/* SPDX-License-Identifier: MIT */
/*
 * The table of lines beside a log (STATE/jobs/ID/lines/KEY): where lines begin, when they were printed, and which
 * number they have. It is kept as long as the log. Whoever writes the log writes it too: before the log's bytes, so
 * that a kill in between leaves a table that tells of bytes which are not there; lines_mend cuts those.
 *
 * The file is a sequence of blocks of LINES_BLOCK bytes, the last of which may be shorter. Each block begins with a
 * whole record (at, ns, number: 8 bytes each, little-endian); each further record is the differences to the one before
 * it (at: varint, ns: zigzag varint, number: varint). A byte 0 where a record would begin ends a block early. So a
 * record is found by bisection over the blocks, and the tail alone can be read. There is one record for the first line
 * of each time: lines that follow with the same time share it, and so does a line of unknown time. But there is at
 * least one record each LINES_SPAN bytes, as far as lines begin there, so whatever lies between two records can be
 * searched in bounded time.
 *
 * A line is a run of bytes that ends with '\n', or the last one, which has no end yet. The functions are for any thread
 * of any process.
 */
#pragma once

#include "spec/base/base.h"

#define LINES_BLOCK	4096
#define LINES_SPAN	(64u << 10)
#define LINES_ADDED_MAX 64 /* the most bytes that lines_add gives */

/* A line of a log: it begins at byte AT and has the time NS since 1970; 0: that is not known. */
struct log_line {
	uint64_t at;
	int64_t ns;
};

struct lines_record {
	struct log_line line;
	uint64_t number; /* number of that line, from 0 */
};

/* What is needed to continue a table. Plain data; all 0 is the one of an empty log. */
struct lines_encoder {
	uint64_t size;		  /* bytes of the log, with all that were added */
	uint64_t lines;		  /* lines that begin in these */
	bool midline;		  /* the last line has no end yet */
	bool any;		  /* there is a record */
	struct lines_record last; /* the newest record */
	uint64_t table;		  /* bytes of the table */
};

/*
 * N bytes that were printed at NS are to follow in the log, 0 < N <= LINES_SPAN. Put at RET the bytes that have to be
 * appended to the table before these, and return how many that are; there may be none.
 */
size_t lines_add(struct lines_encoder *e, int64_t ns, const char *bytes, size_t n,
		 uint8_t ret[LINES_ADDED_MAX]);
/* Like lines_add, for any N > 0 bytes of one line. WHOLE: the last of them, and no other, is a '\n'. */
size_t lines_add_line(struct lines_encoder *e, int64_t ns, size_t n, bool whole,
		      uint8_t ret[LINES_ADDED_MAX]);

/*
 * Make the table FD (open for reading and writing) fit the log LOG_FD, of which SIZE bytes are there: cut off its torn
 * end, and records of bytes that are not there, and add lines of unknown time for bytes of which it does not tell. *RET
 * continues the table. 0 or a negative errno: then there can be no table now. Reads the log from the last line of the
 * table on.
 */
int lines_mend(int fd, int log_fd, uint64_t size, struct lines_encoder *ret);

/* A reader of a table, which may be growing. */
struct lines_reader {
	int fd; /* the caller's */
	uint64_t block;
	size_t n;  /* bytes of the block that are in BYTES */
	size_t at; /* where in BYTES the next record is */
	struct lines_record last;
	uint8_t bytes[LINES_BLOCK];
};

void lines_open(struct lines_reader *r, int fd);
/*
 * Find the last record for which line.at + WEIGHT * number is not after PLACE: with WEIGHT 0 that of the line that byte
 * PLACE is in, or of one before it. -ENOENT: there is none. Or another negative errno.
 */
int lines_find(struct lines_reader *r, uint64_t weight, uint64_t place, struct lines_record *ret);
/*
 * The record after the one that was given last. -ENOENT: there is none yet. A record that can't be right ends the
 * table.
 */
int lines_next(struct lines_reader *r, struct lines_record *ret);

/* How many '\n' are among the N bytes at P. */
size_t lines_count(const char *p, size_t n);
