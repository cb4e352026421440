/* SPDX-License-Identifier: MIT */
/*
 * Chunks are the units of the merged log. A chunk consists of whole lines of one log, or of a part
 * of a line that is too long for one chunk. A chunk may also be the beginning of an incomplete
 * line, up to the line's last '\r': progress bars end each update with '\r' instead of '\n'. A
 * cutter makes chunks from bytes that arrive. A feed makes chunks from bytes that it reads from the
 * disk.
 */
#pragma once

#include "spec/base/base.h"

/* largest size of a chunk in bytes; a longer line becomes several chunks */
#define CHUNK_MAX     65536
#define CHUNK_UNTIMED INT64_MIN /* the time of chunks that are not sorted */

#define CHUNK_ENDS    1u /* the chunk ends with '\n' */
#define CHUNK_CR      2u /* the chunk ends with '\r' */
#define CHUNK_NEWLINE 4u /* the chunk's first byte is '\n' */

struct chunk {
	uint64_t from;	 /* offset of the chunk in its log */
	int64_t ns;	 /* the time of the chunk's first line */
	uint32_t length; /* length in bytes, at most CHUNK_MAX */
	/*
	 * Number of prefixes that the merged log inserts after the chunk's first byte, one at the
	 * beginning of each further line. Here, a '\r' without '\n' also ends a line.
	 */
	uint32_t starts;
	uint32_t lines; /* number of '\n' in the chunk */
	uint32_t flags;
};

/*
 * If B directly follows A in the same log, append B to A. Return false if B does not follow A, or
 * if the result would be longer than CHUNK_MAX.
 */
bool chunk_join(struct chunk *a, const struct chunk *b);
/*
 * True if A and B, which follows A in the same log, should become one chunk of the merged log: they
 * have the same time, or the log is far behind and their times are so near that the order of A, B
 * and a line of another log between them does not matter. BYTES is the number of bytes of the log
 * that wait to be merged.
 */
bool chunk_is_near(const struct chunk *a, const struct chunk *b, uint64_t bytes);

/* A list of chunks of one log, in the order of their bytes. A zeroed list is empty. */
struct chunks {
	struct chunk *v; /* malloc'ed */
	size_t n, room;
	uint64_t bytes; /* total length of the chunks */
};

/* Add P to the list. If P is near the last chunk (chunk_is_near), join the two if possible. */
void chunks_add(struct chunks *all, const struct chunk *p);
/* Empty ALL, but keep its memory for later chunks. */
void chunks_reuse(struct chunks *all);
void chunks_clear(struct chunks *all);

struct cutter {
	uint64_t at; /* offset of the next byte in the log */
	int64_t ns;  /* time of the current line */
	bool midline;
	bool cr;	   /* true if the last byte was '\r' */
	struct chunk open; /* the newest bytes, which are not in a returned chunk yet */
	/*
	 * The part of OPEN up to the last '\r' that is not followed by '\n', as progress bars
	 * print. BAR may become a chunk before the line ends. Its length is 0 if there is no such
	 * part.
	 */
	struct chunk bar;
};

/*
 * Begin at byte AT of a log. If MIDLINE, this byte is in the middle of a line that began at the
 * time NS.
 */
void cutter_begin(struct cutter *c, uint64_t at, bool midline, int64_t ns);
/*
 * Add the next N bytes of the log. NS is the time of the lines that begin in these bytes. Append
 * each complete chunk to RET.
 */
void cutter_add(struct cutter *c, int64_t ns, const char *bytes, size_t n, struct chunks *ret);
/*
 * Like cutter_add, but all N > 0 bytes are of one line. If WHOLE, the last byte is '\n'. No other
 * byte may be '\n'.
 */
void cutter_add_line(struct cutter *c, int64_t ns, const char *bytes, size_t n, bool whole,
		     struct chunks *ret);
/* Call this when no more bytes are available now. Append BAR to RET, unless BAR is empty. */
void cutter_pause(struct cutter *c, struct chunks *ret);
/* Call this when no more bytes will follow. Append the remaining bytes to RET as the last chunk. */
void cutter_end(struct cutter *c, struct chunks *ret);

/*
 * A feed reads chunks of a log from the disk, on the pool: output that a local job's helper has
 * written, output from before kxfs started, and output that exceeds the memory limit. The log's
 * writer delivers all other chunks from memory.
 */
struct feed {
	int dir_fd;
	const char *id, *key;
	uint64_t from;	/* the first byte that is not in a chunk yet */
	uint64_t limit; /* the offset at which the feed stops */
	/* true if the chunks get the times of their lines; otherwise they are not sorted */
	bool timed;
	/* True if the log does not grow any more: an incomplete last line becomes a chunk, too. */
	bool final;

	struct chunks chunks;
	uint64_t size; /* size of the log, at most LIMIT */
	/*
	 * All bytes before this offset are in chunks, or in an incomplete line. If SEEN is lower
	 * than SIZE, another feed must read the rest.
	 */
	uint64_t seen;
};

/* Run F. Return 0 or a negative errno. Even after an error, F may have new chunks. */
int feed_run(struct feed *f);
