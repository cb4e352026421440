/* SPDX-License-Identifier: MIT */
/*
 * A stamp is the time before a line in the stamped form of a log: "2026-11-22T04:35:12.123456Z ".
 * All stamps have STAMP bytes. So the size of the stamped form follows from the size of the log and
 * the number of its lines. A line of unknown time gets the time of the line before it, or 1970. Any
 * thread, but only one thread at a time may use the same struct.
 */
#pragma once

#include "backend/output/lines.h"

#define STAMP 28

/* Set RET to the stamp of the line that contains byte OFFSET of a log. */
typedef void (*stamp_fn)(void *data, uint64_t offset, char ret[STAMP]);

void stamp_print(int64_t ns, char ret[STAMP]);

/* Provides the stamps of one log. Requests in the order of the lines are fastest. */
struct stamper {
	struct lines_reader lines;
	bool known; /* NOW is the record of the last request */
	struct lines_record now, next;
	bool has_next;
	int64_t printed; /* the time in TEXT */
	char text[STAMP];
};

/* Return a stamper, malloc'ed. FD (borrowed) is the log's table of lines, or -1. */
struct stamper *stamper_new(int fd);
/* A stamp_fn whose DATA is a struct stamper. */
void stamper_stamp(void *data, uint64_t offset, char ret[STAMP]);

/* An offset in a log, and the number of lines that begin before it. */
struct stamp_place {
	uint64_t at;
	uint64_t lines;
	bool midline; /* the last of these lines continues at AT */
};

/*
 * Functions on the stamped form of the log FD, which has SIZE bytes. *PLACE is where the next
 * search begins. The caller zeroes it before the first call, and each call updates it. stamped_size
 * sets *RET to the size of the stamped form. stamped_read reads up to N bytes at offset OFF of the
 * stamped form, and returns the number of bytes. Both may return a negative errno.
 */
int stamped_size(int fd, struct stamper *s, uint64_t size, struct stamp_place *place,
		 uint64_t *ret);
ssize_t stamped_read(int fd, struct stamper *s, uint64_t size, struct stamp_place *place, char *buf,
		     size_t n, uint64_t off);
