/* SPDX-License-Identifier: MIT */
/*
 * Pieces, the units of the merged log. A piece is some whole lines of one log, or a part of a line
 * that is too long for one piece, or an incomplete line that a progress bar has ended with '\r' so
 * far. The cutter makes pieces of a log's bytes as they arrive. Pure.
 */
#pragma once

#include "spec/base/base.h"

#define PIECE_MAX     65536	/* bytes of a piece; a longer line is cut into several */
#define PIECE_UNTIMED INT64_MIN /* the time of pieces that are not sorted */

#define PIECE_ENDS    1u /* it ends with '\n' */
#define PIECE_CR      2u /* it ends with '\r' */
#define PIECE_NEWLINE 4u /* its first byte is '\n' */

struct piece {
	uint64_t from;	 /* offset in its log */
	int64_t ns;	 /* the time of its first line */
	uint32_t length; /* length in bytes, at most PIECE_MAX */
	/*
	 * Prefixes that it needs after its first byte: one for each line, including those that end
	 * with '\r'.
	 */
	uint32_t starts;
	uint32_t lines; /* lines that end in it with '\n' */
	uint32_t flags;
};

/*
 * Append B, which follows A in the same log, to A. Return false if B does not follow A, or the two
 * are too long.
 */
bool piece_join(struct piece *a, const struct piece *b);
/*
 * True if A and B, which follow each other, should be one piece of the merged log. BYTES of their
 * log wait. They should if they have one time, or if the log is far behind and their times are so
 * near that other lines between them do not matter.
 */
bool piece_is_near(const struct piece *a, const struct piece *b, uint64_t bytes);

/* Pieces of one log, in order. All 0 is an empty list. */
struct pieces {
	struct piece *v; /* malloc'ed */
	size_t n, room;
	uint64_t bytes; /* bytes in all of them */
};

/* Add P, as one more piece, or joined with the last one. */
void pieces_add(struct pieces *all, const struct piece *p);
/* Empty ALL, but keep its memory for later pieces. */
void pieces_reuse(struct pieces *all);
void pieces_clear(struct pieces *all);

struct cutter {
	uint64_t at; /* offset of the next byte in the log */
	int64_t ns;  /* time of the line that is open */
	bool midline;
	bool cr;	   /* the last byte was '\r' */
	struct piece open; /* bytes that are not in a piece yet */
	/*
	 * The part of OPEN up to the last lone '\r', a progress bar: it may be delivered before the
	 * line ends. Length 0 if there is none.
	 */
	struct piece bar;
};

/* Begin at byte AT. MIDLINE: it belongs to a line that began before that, at the time NS. */
void cutter_begin(struct cutter *c, uint64_t at, bool midline, int64_t ns);
/* Add N bytes; lines that begin in them were printed at NS. Append each complete piece to RET. */
void cutter_add(struct cutter *c, int64_t ns, const char *bytes, size_t n, struct pieces *ret);
/* Like cutter_add, for N > 0 bytes of one line. WHOLE: the last of them, and no other, is a '\n'. */
void cutter_add_line(struct cutter *c, int64_t ns, const char *bytes, size_t n, bool whole,
		     struct pieces *ret);
/* No more bytes are available now: complete a piece that ends with '\r'. */
void cutter_pause(struct cutter *c, struct pieces *ret);
/* No byte will follow: complete the last piece. */
void cutter_end(struct cutter *c, struct pieces *ret);
