/* SPDX-License-Identifier: MIT */
/*
 * Reads the pieces of a log from the disk, on the pool. So the merged log gets three sorts of output: what a local
 * job's helper writes, what was there before kxfs started, and what was dropped because more waited than is kept in
 * memory. All other pieces come from the log's writer.
 */
#pragma once

#include "backend/output/lines.h"
#include "backend/output/piece.h"

struct feed {
	int dir_fd;
	const char *id, *key;
	uint64_t from;	/* the first byte that is in no piece yet */
	uint64_t limit; /* bytes from here on are not looked at */
	bool timed;	/* the pieces get the times of their lines; else they go as they come */
	/* No byte will be written any more, so a line without an end is a piece too. */
	bool final;

	struct pieces pieces;
	/* The bytes from FROM to SEEN, malloc'ed, if they are not many; NULL: they are not kept. */
	char *bytes;
	uint64_t size; /* size of the log */
	/* All bytes before it are in pieces, or in a line that has no end yet; below SIZE: run the feed again. */
	uint64_t seen;
};

/* 0 or a negative errno, with which there may be pieces, too. */
int feed_run(struct feed *f);
