/* SPDX-License-Identifier: MIT */
/*
 * Stamps: the times of lines in `stamped`, "2026-11-22T04:35:12.123456Z ", each STAMP bytes long,
 * so that the number of a log's lines determines the length of its stamped form. A line with an
 * unknown time gets the time of the line before it, or 1970. Any thread, but only one at a time may
 * use a struct.
 */
#pragma once

#include "backend/output/lines.h"

#define STAMP 28

/* Set RET to the stamp of the line with the byte at OFFSET of a log. */
typedef void (*stamp_fn)(void *data, uint64_t offset, char ret[STAMP]);

void stamp_print(int64_t ns, char ret[STAMP]);

/* Provides the stamps of one log's lines, fastest in order. */
struct stamper {
	struct lines_reader lines;
	bool known; /* NOW is the record of the last request */
	struct lines_record now, next;
	bool has_next;
	int64_t printed; /* the time printed in TEXT */
	char text[STAMP];
};

/* FD is the table of lines, owned by the caller; -1 without a table. */
void stamper_open(struct stamper *s, int fd);
/* A stamp_fn, whose DATA is the stamper. */
void stamper_stamp(void *data, uint64_t offset, char ret[STAMP]);

/* An offset in a log, and the number of lines that begin before it. */
struct stamp_place {
	uint64_t at;
	uint64_t lines;
	bool midline; /* the last of these lines continues here */
};

/*
 * Functions on the stamped form of the log FD, which has SIZE bytes and the stamper S. *PLACE is
 * the position at which the search begins, all 0 at first; it is updated for the next search.
 * stamped_size sets *RET to the length of that form, stamped_read reads up to N bytes of it at OFF
 * and returns their number. Both read a part of the log, and return a negative errno on failure.
 */
int stamped_size(int fd, struct stamper *s, uint64_t size, struct stamp_place *place,
		 uint64_t *ret);
ssize_t stamped_read(int fd, struct stamper *s, uint64_t size, struct stamp_place *place, char *buf,
		     size_t n, uint64_t off);
