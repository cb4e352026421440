/* SPDX-License-Identifier: MIT */
/*
 * A stamp is the time before a line in the stamped form of a log: "2026-11-22T04:35:12.123456Z ".
 * All stamps have STAMP bytes. So the length of the stamped form follows from the size of the log
 * and the number of its lines. A line whose time is unknown gets the time of the line before it, or
 * 1970 if no time is known. Any thread may call these functions, but only one thread at a time may
 * use the same struct.
 */
#pragma once

#include "backend/output/lines.h"

#define STAMP 28

/* Set RET to the stamp of the line that contains byte OFFSET of a log. */
typedef void (*stamp_fn)(void *data, uint64_t offset, char ret[STAMP]);

void stamp_print(int64_t ns, char ret[STAMP]);

/*
 * Provides the stamps of one log's lines. This is fastest if the caller requests the stamps in the
 * order of the lines.
 */
struct stamper {
	struct lines_reader lines;
	bool known; /* true if NOW is the record of the last request */
	struct lines_record now, next;
	bool has_next;
	int64_t printed; /* the time printed in TEXT */
	char text[STAMP];
};

/* Return a stamper, malloc'ed. FD is borrowed: the log's table of lines, or -1 if there is none. */
struct stamper *stamper_new(int fd);
/* A stamp_fn whose DATA is a struct stamper. */
void stamper_stamp(void *data, uint64_t offset, char ret[STAMP]);

/* An offset in a log, and the number of lines that begin before it. */
struct stamp_place {
	uint64_t at;
	uint64_t lines;
	bool midline; /* true if the last of these lines continues at AT */
};

/*
 * Functions on the stamped form of the log FD, which has SIZE bytes. S provides the stamps. *PLACE
 * is the position where the next search begins. The caller zeroes *PLACE before the first call, and
 * each call updates it. stamped_size sets *RET to the length of the stamped form. stamped_read
 * reads up to N bytes at offset OFF of the stamped form, and returns the number of bytes read. Both
 * may return a negative errno.
 */
int stamped_size(int fd, struct stamper *s, uint64_t size, struct stamp_place *place,
		 uint64_t *ret);
ssize_t stamped_read(int fd, struct stamper *s, uint64_t size, struct stamp_place *place, char *buf,
		     size_t n, uint64_t off);
