/* SPDX-License-Identifier: MIT */
/*
 * Reads the pieces of a log from the disk, on the pool. This is how the merged log gets what a local job's helper
 * writes, what was there before kxfs started, and that of which more waited than is kept in memory. All other pieces
 * come from the log's writer.
 */
#pragma once

#include "backend/output/lines.h"
#include "backend/output/piece.h"

struct feed {
	int dir_fd;
	const char *id, *key;
	uint64_t from;	/* the first byte that is in no piece yet */
	uint64_t limit; /* bytes from here on are not looked at */
	bool timed;	/* pieces have the times of their lines; else they go as they come */
	bool final;	/* no byte will be written any more: what has no end is a piece too */

	struct pieces pieces;
	char *bytes; /* those from FROM to SEEN, malloc'ed, if they are not many; NULL: they are not kept */
	uint64_t size; /* of the log */
	/* all before it is in pieces, or in a line that has no end yet; below SIZE: go on */
	uint64_t seen;
};

/* 0 or a negative errno; then there may be pieces all the same. */
int feed_run(struct feed *f);
