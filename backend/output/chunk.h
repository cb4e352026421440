/* SPDX-License-Identifier: MIT */
/*
 * Chunks, the units of the merged log. A chunk is one of these: whole lines of one log; a part of a
 * line that is too long for one chunk; or, of an incomplete line, the part up to its last '\r',
 * which a progress bar prints. The cutter makes chunks of a log's bytes as they arrive; a feed
 * reads them from the disk.
 */
#pragma once

#include "spec/base/base.h"

#define CHUNK_MAX     65536	/* bytes of a chunk; a longer line is cut into several */
#define CHUNK_UNTIMED INT64_MIN /* the time of chunks that are not sorted */

#define CHUNK_ENDS    1u /* the chunk ends with '\n' */
#define CHUNK_CR      2u /* the chunk ends with '\r' */
#define CHUNK_NEWLINE 4u /* the chunk's first byte is '\n' */

struct chunk {
	uint64_t from;	 /* offset of the chunk in its log */
	int64_t ns;	 /* the time of the chunk's first line */
	uint32_t length; /* length in bytes, at most CHUNK_MAX */
	/*
	 * Number of prefixes after its first byte: one for each further line, including lines that
	 * end with '\r'.
	 */
	uint32_t starts;
	uint32_t lines; /* number of lines that end in the chunk, with '\n' */
	uint32_t flags;
};

/*
 * Append B, which follows A in the same log, to A. Return false if B does not follow A, or the two
 * are too long.
 */
bool chunk_join(struct chunk *a, const struct chunk *b);
/*
 * True if A and B, which follow each other in a log, should become one chunk of the merged log: if
 * they have the same time, or if the log is far behind (BYTES of it wait) and their times are so
 * near that lines of other logs between them do not matter.
 */
bool chunk_is_near(const struct chunk *a, const struct chunk *b, uint64_t bytes);

/* Chunks of one log, in order. All 0 is an empty list. */
struct chunks {
	struct chunk *v; /* malloc'ed */
	size_t n, room;
	uint64_t bytes; /* bytes in all of them */
};

/* Add P, as one more chunk, or joined with the last one. */
void chunks_add(struct chunks *all, const struct chunk *p);
/* Empty ALL, but keep its memory for later chunks. */
void chunks_reuse(struct chunks *all);
void chunks_clear(struct chunks *all);

struct cutter {
	uint64_t at; /* offset of the next byte in the log */
	int64_t ns;  /* time of the line that is open */
	bool midline;
	bool cr;	   /* the last byte was '\r' */
	struct chunk open; /* bytes that are not in a chunk yet */
	/*
	 * The part of OPEN up to the last lone '\r', which a progress bar prints. It may become a
	 * chunk before the line ends. Its length is 0 if there is no such part.
	 */
	struct chunk bar;
};

/* Begin at byte AT. If MIDLINE, this byte belongs to a line that began earlier, at the time NS. */
void cutter_begin(struct cutter *c, uint64_t at, bool midline, int64_t ns);
/* Add N bytes; lines that begin in them were printed at NS. Append each complete chunk to RET. */
void cutter_add(struct cutter *c, int64_t ns, const char *bytes, size_t n, struct chunks *ret);
/* Like cutter_add, for N > 0 bytes of one line. WHOLE: the last of them, and no other, is a '\n'. */
void cutter_add_line(struct cutter *c, int64_t ns, const char *bytes, size_t n, bool whole,
		     struct chunks *ret);
/* No more bytes are available now: complete a chunk that ends with '\r'. */
void cutter_pause(struct cutter *c, struct chunks *ret);
/* No byte will follow: complete the last chunk. */
void cutter_end(struct cutter *c, struct chunks *ret);

/*
 * A run of the pool that reads the chunks of a log from the disk. It serves output of a local job's
 * helper, output from before kxfs started, and output beyond the memory limit. The log's writer
 * delivers all other chunks.
 */
struct feed {
	int dir_fd;
	const char *id, *key;
	uint64_t from;	/* the first byte that is not in a chunk yet */
	uint64_t limit; /* bytes from here on are not read */
	bool timed;	/* the chunks get the times of their lines; otherwise they are not sorted */
	/* The log does not grow any more, so an incomplete line becomes a chunk, too. */
	bool final;

	struct chunks chunks;
	/* The bytes from FROM to SEEN, malloc'ed, if they are few; else NULL. */
	char *bytes;
	uint64_t size; /* size of the log */
	/*
	 * All bytes before this offset are in chunks, or in an incomplete line. If it is below
	 * SIZE, run the feed again.
	 */
	uint64_t seen;
};

/* Return 0 or a negative errno; there may be chunks in both cases. */
int feed_run(struct feed *f);
