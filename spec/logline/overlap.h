/* SPDX-License-Identifier: MIT */
/*
 * Finds the first byte of a stream that is after the known end of its log. If a line in the stream
 * may have the time of a known line, this module makes a guess. The guess is the offset in the log
 * at which the stream would then be. A guess is dropped as soon as a byte differs from the known
 * byte at the guessed offset, or as soon as the time of a line differs from the time of the known
 * line. If a guess reaches the end of the known output, all later bytes are new according to this
 * guess. But other guesses may remain, and according to them some of these bytes are known. So this
 * module holds the bytes until every other guess has proved right or wrong, since no line may be
 * delivered twice.
 *
 * A crash of the machine may have lost the end of the table of lines. Then the times of some known
 * lines are unknown. For such lines only bytes decide, and a guess must match at least 256 of them.
 * A stream may also begin in the middle of a line, with a part that the runtime has cut off. The
 * time of the part proves nothing, and its few bytes may also occur in the output of another run.
 * So a guess for a part counts only with FORCE: the caller then knows that no other stream is
 * available. Private to spec/logline.
 */
#pragma once

#include "spec/logline/logline.h"

struct overlap;

enum overlap_answer {
	OVERLAP_KNOWN, /* these bytes are known, or may be known */
	OVERLAP_NEW,   /* the held bytes are new, and so are all bytes after these */
	/* the stream has a line that is newer than the known end, but lacks that end */
	OVERLAP_NONE,
};

/* Start to compare a stream with KNOWN. Take ownership of KNOWN, which must not be empty. */
struct overlap *overlap_new(struct spec_logline_known *known, bool force);
void overlap_free(struct overlap *o);
/* Return the time in ns from which the caller must request the stream; 0 for the log's start. */
int64_t overlap_since(const struct overlap *o);
/*
 * Begin a line, or a part that the runtime has cut off a line if PART is true. NS is its time. NEXT
 * has its first N bytes; N may be 0.
 */
enum overlap_answer overlap_line(struct overlap *o, int64_t ns, bool part, const char *next,
				 size_t n);
/*
 * Process up to N bytes of the line that overlap_line has begun. Set *RET_N to the number of
 * processed bytes. This number is less than N if a guess reaches the end of the known output, or if
 * the next bytes are new.
 */
enum overlap_answer overlap_bytes(struct overlap *o, const char *bytes, size_t n, size_t *ret_n);
/*
 * Call this at the end of the stream. AGAIN is true if the previous stream ended at the same byte.
 * Return OVERLAP_NEW if the held bytes count as new, or else OVERLAP_KNOWN.
 */
enum overlap_answer overlap_end(struct overlap *o, bool again);
/* True if the stream includes, or may include, a part of the known end. */
bool overlap_is_found(const struct overlap *o);
/* True if a line with the time NS is newer than all known lines. */
bool overlap_is_newer(const struct overlap *o, int64_t ns);
/* Call this after OVERLAP_NONE. True if newer bytes were mistaken for known bytes and skipped. */
bool overlap_has_skipped(const struct overlap *o);
/* Call FN with the held bytes. Return 0, or the error of FN. */
int overlap_release(struct overlap *o, spec_logline_fn fn, void *data);
