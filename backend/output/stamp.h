/* SPDX-License-Identifier: MIT */
/*
 * Stamps: the times of lines as readers of `stamped` see them, "2026-11-22T04:35:12.123456Z ", each STAMP bytes long,
 * so that the number of a log's lines gives the length of its stamped form. A line whose time is not known has the time
 * of the line before it, or 1970. Any thread, but only one at a time may use a struct.
 */
#pragma once

#include "backend/output/lines.h"

#define STAMP 28

/* Sets RET to the stamp of the line that the byte at OFFSET of a log is in. */
typedef void (*stamp_fn)(void *data, uint64_t offset, char ret[STAMP]);

void stamp_print(int64_t ns, char ret[STAMP]);

/* Gives the stamps of one log's lines, fastest in their order. */
struct stamper {
	struct lines_reader lines;
	bool known; /* NOW is the record that was last asked for */
	struct lines_record now, next;
	bool has_next;
	int64_t printed; /* the time that TEXT shows */
	char text[STAMP];
};

/* FD is the table of lines, and stays the caller's; -1: there is none. */
void stamper_open(struct stamper *s, int fd);
/* A stamp_fn, whose DATA is the stamper. */
void stamper_stamp(void *data, uint64_t offset, char ret[STAMP]);

/* A place in a log, and how many lines begin before it. */
struct stamp_place {
	uint64_t at;
	uint64_t lines;
	bool midline; /* the last of these lines goes on here */
};

/*
 * The stamped form of the log FD, of which SIZE bytes are there, with its stamper. *PLACE is where a search may begin
 * (all 0 at first), and becomes where the next one should. The first returns how long that form is, the second reads up
 * to N bytes of it at OFF and returns how many; both read a part of the log. 0 or more, or a negative errno.
 */
int stamped_size(int fd, struct stamper *s, uint64_t size, struct stamp_place *place,
		 uint64_t *ret);
ssize_t stamped_read(int fd, struct stamper *s, uint64_t size, struct stamp_place *place, char *buf,
		     size_t n, uint64_t off);
