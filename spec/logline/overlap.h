/* SPDX-License-Identifier: MIT */
/*
 * Finds where in a stream the known end of its log ends. Each line of the stream that by its time may be a known one
 * gives a guess of how the stream lies beside the known end. A guess is dropped as soon as a line begins with another
 * time than the known line there, or a byte differs. Once a guess has reached the end of the log, all later bytes are
 * new; but if other guesses for the same line are left, which say that more is known, later bytes are held until these
 * have turned out right or wrong, since no line may be given out twice.
 *
 * If no times are known (a crash of the machine has lost the end of the table of lines), the bytes alone decide, and a
 * guess needs at least 256 of them. If a stream may begin with a part of a line that the runtime has cut, its time says
 * nothing, and a few bytes may easily be those of another run: such a guess counts only if the owner says that nothing
 * else can be had (FORCE). Private to spec/logline.
 */
#pragma once

#include "spec/logline/logline.h"

struct overlap;

enum overlap_answer {
	OVERLAP_KNOWN, /* these bytes are known, or may be */
	OVERLAP_NEW,   /* the bytes after these are new, and so are those that are held */
	OVERLAP_NONE,  /* the line is newer than the known end, which the stream has not shown */
};

/* Begin. KNOWN is taken over, and is not empty. */
struct overlap *overlap_new(struct spec_logline_known *known, bool force);
void overlap_free(struct overlap *o);
/* The time from which on the stream has to be asked for, ns; 0: from the log's start. */
int64_t overlap_since(const struct overlap *o);
/*
 * A line of time NS begins; or (PART) a part of a line that the runtime has cut. Its first N bytes, which may be none,
 * are at NEXT.
 */
enum overlap_answer overlap_line(struct overlap *o, int64_t ns, bool part, const char *next,
				 size_t n);
/* Take up to N bytes of that line. *RET_N is how many were taken: fewer than N when a guess ends, right or wrong. */
enum overlap_answer overlap_bytes(struct overlap *o, const char *bytes, size_t n, size_t *ret_n);
/* The stream has ended, AGAIN at the same byte. OVERLAP_NEW: the bytes that are held count as new then. */
enum overlap_answer overlap_end(struct overlap *o, bool again);
/* Does the stream show anything of the known end? */
bool overlap_is_found(const struct overlap *o);
/* Is a line of time NS newer than all known ones? */
bool overlap_is_newer(const struct overlap *o, int64_t ns);
/* After OVERLAP_NONE: were some bytes newer, but taken, since a guess said that they are known? */
bool overlap_has_skipped(const struct overlap *o);
/* Give out the bytes that are held. 0, or what FN returned. */
int overlap_release(struct overlap *o, spec_logline_fn fn, void *data);
