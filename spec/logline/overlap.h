/* SPDX-License-Identifier: MIT */
/*
 * Where in a stream the known end of its log ends. Each line of the stream that may be a known one, by its time,
 * gives a guess of how the stream lies beside the known end. A guess is dropped as soon as a line begins with
 * another time than the known line there, or a byte is another. Once a guess has reached the end of the log all
 * later bytes are new; if other guesses of the same line are left, which say that more is known, what follows is held
 * until they have turned out right or wrong, since no line may be given out twice.
 *
 * Where no times are known (a crash of the machine has lost the end of the table of lines) the bytes alone
 * decide: a guess that rests on them needs at least 256 of them. Where a stream may begin with a part of a line that
 * the runtime has cut, its time says nothing, and a few bytes are easily those of another run: such a guess counts only
 * if the owner says that nothing else can be had (FORCE). Private to spec/logline.
 */
#pragma once

#include "spec/logline/logline.h"

struct overlap;

enum overlap_answer {
	OVERLAP_KNOWN, /* this is known, or may be */
	OVERLAP_NEW,   /* what follows is new, and so is what is held */
	OVERLAP_NONE,  /* the line is newer than what is known, which the stream has not shown */
};

/* KNOWN is taken over, and is not empty. */
struct overlap *overlap_new(struct spec_logline_known *known, bool force);
void overlap_free(struct overlap *o);
/* The time from which on the stream has to be asked for, ns; 0: from the log's start. */
int64_t overlap_since(const struct overlap *o);
/*
 * A line of time NS begins; or (PART) a part of one that the runtime has cut. The first N bytes of it, which may be
 * none, are at NEXT.
 */
enum overlap_answer overlap_line(struct overlap *o, int64_t ns, bool part, const char *next,
				 size_t n);
/* Up to N bytes of that line. *RET_N is how many were taken: fewer than N when a guess ends, right or wrong. */
enum overlap_answer overlap_bytes(struct overlap *o, const char *bytes, size_t n, size_t *ret_n);
/* The stream has ended, AGAIN at the same byte: OVERLAP_NEW if what is held is taken for new then. */
enum overlap_answer overlap_end(struct overlap *o, bool again);
/* Does the stream show anything of what is known? */
bool overlap_is_found(const struct overlap *o);
/* Is a line of time NS newer than all that is known? */
bool overlap_is_newer(const struct overlap *o, int64_t ns);
/* After OVERLAP_NONE: were some bytes newer, but taken, since a guess said that they are known? */
bool overlap_has_skipped(const struct overlap *o);
/* Give out what is held. 0, or what FN returned. */
int overlap_release(struct overlap *o, spec_logline_fn fn, void *data);
