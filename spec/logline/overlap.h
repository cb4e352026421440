/* SPDX-License-Identifier: MIT */
/*
 * Finds where in a stream the known end of its log ends. Each line of the stream whose time may be
 * that of a known line yields a guess of the stream's offset in the log. A guess is dropped as soon
 * as a line has another time than the known line at that offset, or a byte differs. Once a guess
 * has reached the end of the log, all later bytes are new. But other guesses for the same line may
 * remain, by which some of these bytes are known. Then later bytes are held until the other guesses
 * have proved right or wrong, since no line may be delivered twice.
 *
 * If no times are known (a crash of the machine has lost the end of the table of lines), only the
 * bytes decide, and a guess needs at least 256 of them. If a stream may begin in the middle of a
 * line, with a part that the runtime has cut, the time of that part is not usable, and its few
 * bytes may also occur in the output of another run. Such a guess counts only if the caller knows
 * that nothing else is available (FORCE). Private to spec/logline.
 */
#pragma once

#include "spec/logline/logline.h"

struct overlap;

enum overlap_answer {
	OVERLAP_KNOWN, /* these bytes are known, or may be */
	OVERLAP_NEW,   /* the bytes after these are new, and so are the held ones */
	OVERLAP_NONE,  /* a line newer than the known end, which is not in the stream */
};

/* Start. KNOWN is taken over, and is not empty. */
struct overlap *overlap_new(struct spec_logline_known *known, bool force);
void overlap_free(struct overlap *o);
/* Return the time from which to request the stream, ns; 0: from the log's start. */
int64_t overlap_since(const struct overlap *o);
/*
 * Begin a line of time NS; or, with PART, a part of a line that the runtime has cut. NEXT has the
 * first N bytes of it; N may be 0.
 */
enum overlap_answer overlap_line(struct overlap *o, int64_t ns, bool part, const char *next,
				 size_t n);
/*
 * Process up to N bytes of that line. *RET_N is the number of processed bytes: fewer than N when a
 * guess ends, right or wrong.
 */
enum overlap_answer overlap_bytes(struct overlap *o, const char *bytes, size_t n, size_t *ret_n);
/*
 * End the stream. AGAIN: the stream before ended at the same byte. Return OVERLAP_NEW if the held
 * bytes now count as new.
 */
enum overlap_answer overlap_end(struct overlap *o, bool again);
/* True if the stream has shown any of the known end. */
bool overlap_is_found(const struct overlap *o);
/* True if a line of time NS is newer than all known ones. */
bool overlap_is_newer(const struct overlap *o, int64_t ns);
/* After OVERLAP_NONE: true if some bytes were newer, but a guess had taken them for known. */
bool overlap_has_skipped(const struct overlap *o);
/* Deliver the held bytes. Return 0, or the result of FN. */
int overlap_release(struct overlap *o, spec_logline_fn fn, void *data);
