/* SPDX-License-Identifier: MIT */
/*
 * Finds the first byte of a stream that is after the known end of its log. If a line of the stream
 * may be a known line, this module makes a guess: the offset in the log to which the stream's next
 * byte belongs. The module drops a guess if a later byte, or the time of a later line, differs from
 * the known byte or time. When a guess reaches the end of the known output, all later bytes are new
 * if the guess is right. But while another guess is left, they may be known bytes. So the module
 * holds them back until no other guess is left, so that no line is delivered twice.
 *
 * A crash of the machine may have lost the times of the last known lines. These lines can be
 * compared only by their bytes, so a guess must then match at least 256 bytes. A stream may begin
 * with a part of a cut line. The time of a part confirms nothing, and another run may print the
 * same few bytes. So a guess for a part counts only with FORCE, when the caller knows that no
 * better stream is available. Private to spec/logline.
 */
#pragma once

#include "spec/logline/logline.h"

struct overlap;

enum overlap_answer {
	OVERLAP_KNOWN, /* the processed bytes are known, or may be known */
	OVERLAP_NEW,   /* the held bytes and all later bytes are new */
	OVERLAP_NONE,  /* the stream has a line newer than the known end, but not the known end */
};

/* Take ownership of the contents of KNOWN, whose SIZE must not be 0. */
struct overlap *overlap_new(struct spec_logline_known *known, bool force);
void overlap_free(struct overlap *o);
/*
 * Return the time in ns from which the caller must request the stream; 0 if it must request the
 * stream from the start of the log.
 */
int64_t overlap_since(const struct overlap *o);
/* Begin a line with the time NS. NEXT has its first N bytes. */
enum overlap_answer overlap_line(struct overlap *o, int64_t ns, const char *next, size_t n);
/*
 * Process up to N bytes of the current line, and set *RET_N to the number of processed bytes. This
 * is less than N if a guess reaches the end of the known output, or if the next bytes are new.
 */
enum overlap_answer overlap_bytes(struct overlap *o, const char *bytes, size_t n, size_t *ret_n);
/*
 * End the stream. AGAIN is true if an earlier stream ended at the same byte: the held bytes then
 * count as new.
 */
enum overlap_answer overlap_end(struct overlap *o, bool again);
/* True if the stream may include a part of the known end. */
bool overlap_is_found(const struct overlap *o);
bool overlap_is_newer(const struct overlap *o, int64_t ns);
/* Call this after OVERLAP_NONE. True if newer bytes may have been mistaken for known bytes. */
bool overlap_has_skipped(const struct overlap *o);
/* Call FN with the held bytes. Return 0, or the error of FN. */
int overlap_release(struct overlap *o, spec_logline_fn fn, void *data);
