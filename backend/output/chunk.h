/* SPDX-License-Identifier: MIT */
/*
 * A chunk is a unit of the merged log: whole lines of one log, or a part of a line. A line that is
 * longer than CHUNK_MAX becomes several chunks. The beginning of an incomplete line, up to its last
 * '\r', may also be a chunk: progress bars end each update with '\r' instead of '\n'. A cutter
 * makes chunks from bytes that arrive. A feed makes chunks from bytes that it reads from the disk.
 */
#pragma once

#include "spec/base/base.h"

#define CHUNK_MAX     65536	/* largest size of a chunk in bytes */
#define CHUNK_UNTIMED INT64_MIN /* time of a chunk that is not sorted */

#define CHUNK_ENDS    1u /* ends with '\n' */
#define CHUNK_CR      2u /* ends with '\r' */
#define CHUNK_NEWLINE 4u /* begins with '\n' */

struct chunk {
	uint64_t from;	 /* offset in its log */
	int64_t ns;	 /* time of its first line */
	uint32_t length; /* at most CHUNK_MAX bytes */
	/*
	 * Number of prefixes that the merged log inserts after the chunk's first byte, one at the
	 * beginning of each further line. Here, a '\r' without '\n' also ends a line.
	 */
	uint32_t starts;
	uint32_t lines; /* number of '\n' */
	uint32_t flags;
};

/* If B directly follows A, and both together fit into CHUNK_MAX, append B to A. Return true. */
bool chunk_join(struct chunk *a, const struct chunk *b);
/*
 * True if A and B, which follows A in the same log, should become one chunk: they have the same
 * time, or, if more than 256 KiB of the log (BYTES) wait to be merged, B is less than 1 ms later.
 */
bool chunk_is_near(const struct chunk *a, const struct chunk *b, uint64_t bytes);

/* Chunks of one log, in the order of their bytes. A zeroed list is empty. */
struct chunks {
	struct chunk *v;
	size_t n, room;
	uint64_t bytes; /* total length */
};

/* Append P, or join it with the last chunk if both are near (chunk_is_near). */
void chunks_add(struct chunks *all, const struct chunk *p);
void chunks_clear(struct chunks *all);

struct cutter {
	uint64_t at; /* offset of the next byte */
	int64_t ns;  /* time of the current line */
	bool midline;
	bool cr;	   /* the last byte was '\r' */
	struct chunk open; /* bytes that are not in a returned chunk yet */
	/*
	 * The beginning of OPEN, up to the last '\r' that is not followed by '\n'. BAR may become a
	 * chunk before the line ends. Its length is 0 if OPEN has no such '\r'.
	 */
	struct chunk bar;
};

/* Begin at byte AT of a log. If MIDLINE, this byte is within a line of the time NS. */
void cutter_begin(struct cutter *c, uint64_t at, bool midline, int64_t ns);
/* Add N bytes. Lines that begin in them have the time NS. Append complete chunks to RET. */
void cutter_add(struct cutter *c, int64_t ns, const char *bytes, size_t n, struct chunks *ret);
/* Like cutter_add, for N > 0 bytes of one line. If WHOLE, they end with the line's '\n'. */
void cutter_add_line(struct cutter *c, int64_t ns, const char *bytes, size_t n, bool whole,
		     struct chunks *ret);
/* Call this when no more bytes are available now. Append BAR to RET, unless BAR is empty. */
void cutter_pause(struct cutter *c, struct chunks *ret);
/* Call this when no more bytes will follow. Append the remaining bytes to RET. */
void cutter_end(struct cutter *c, struct chunks *ret);

/*
 * A feed reads chunks of a log from the disk, on the pool. kxfs uses a feed for the output of a
 * local job, which a helper process writes, for output from before kxfs started, and for output
 * beyond the memory limit. Other chunks come from the log's writer.
 */
struct feed {
	int dir_fd;
	const char *id, *key;
	uint64_t from;	/* first byte that is not in a chunk yet */
	uint64_t limit; /* where the feed stops */
	bool timed;	/* chunks get the times of their lines; else CHUNK_UNTIMED */
	bool final;	/* the log has ended: an incomplete last line becomes a chunk */

	struct chunks chunks;
	uint64_t size; /* size of the log, at most LIMIT */
	/*
	 * The feed has read all bytes before this offset. If SEEN is lower than SIZE, another feed
	 * must read the rest.
	 */
	uint64_t seen;
};

/* Return 0 or a negative errno. Even after an error, F may have new chunks. */
int feed_run(struct feed *f);
