/* SPDX-License-Identifier: MIT */
/*
 * Reads the chunks of a log from the disk, on the pool. This is for three kinds of output: output
 * of a local job's helper, output from before kxfs started, and output that exceeded the limit of
 * memory. The log's writer delivers all other chunks.
 */
#pragma once

#include "backend/output/chunk.h"
#include "backend/output/lines.h"

struct feed {
	int dir_fd;
	const char *id, *key;
	uint64_t from;	/* the first byte that is not in a chunk yet */
	uint64_t limit; /* bytes from here on are not read */
	bool timed;	/* the chunks get the times of their lines; otherwise they are not sorted */
	/* No byte will be written any more, so an incomplete line is a chunk too. */
	bool final;

	struct chunks chunks;
	/* The bytes from FROM to SEEN, malloc'ed, if they are few; else NULL. */
	char *bytes;
	uint64_t size; /* size of the log */
	/*
	 * All bytes before it are in chunks, or in an incomplete line; below SIZE: run the feed
	 * again.
	 */
	uint64_t seen;
};

/* Return 0 or a negative errno; there may be chunks in both cases. */
int feed_run(struct feed *f);
