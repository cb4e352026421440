/* SPDX-License-Identifier: MIT */
/*
 * Finds the first byte of a stream that is after the known end of its log. If a line of the stream
 * may be a known line, this module makes a guess: the offset in the log to which the stream's next
 * byte belongs. It drops the guess when a byte or the time of a line differs from the known one.
 * After a guess has reached the end of the known output, all later bytes are new according to that
 * guess. They are held while another guess says that they are known, so that no line is delivered
 * twice.
 *
 * A crash of the machine may have lost the times of the last known lines. Then only bytes decide,
 * and a guess must match at least 256 of them. A stream may begin with a part of a cut line. The
 * part's time proves nothing, and another run may print the same few bytes. So a guess for a part
 * counts only with FORCE, when the caller knows that no better stream is available. Private to
 * spec/logline.
 */
#pragma once

#include "spec/logline/logline.h"

struct overlap;

enum overlap_answer {
	OVERLAP_KNOWN, /* known, or perhaps known */
	OVERLAP_NEW,   /* the held bytes and all later bytes are new */
	OVERLAP_NONE,  /* the stream has a line newer than the known end, but lacks that end */
};

/* Take ownership of the contents of KNOWN, which must not be empty. */
struct overlap *overlap_new(struct spec_logline_known *known, bool force);
void overlap_free(struct overlap *o);
/* Return the time in ns from which the caller must request the stream; 0 for the log's start. */
int64_t overlap_since(const struct overlap *o);
/* Begin a line. NEXT has its first N bytes. */
enum overlap_answer overlap_line(struct overlap *o, int64_t ns, const char *next, size_t n);
/*
 * Process up to N bytes of the current line, and set *RET_N to the number of processed bytes. This
 * is less than N if a guess reaches the end of the known output, or if the next bytes are new.
 */
enum overlap_answer overlap_bytes(struct overlap *o, const char *bytes, size_t n, size_t *ret_n);
/* End the stream. Held bytes count as new if an earlier stream ended at the same byte (AGAIN). */
enum overlap_answer overlap_end(struct overlap *o, bool again);
/* True if the stream includes, or may include, a part of the known end. */
bool overlap_is_found(const struct overlap *o);
bool overlap_is_newer(const struct overlap *o, int64_t ns);
/* Call this after OVERLAP_NONE. True if newer bytes may have been mistaken for known bytes. */
bool overlap_has_skipped(const struct overlap *o);
/* Call FN with the held bytes. Return 0, or the error of FN. */
int overlap_release(struct overlap *o, spec_logline_fn fn, void *data);
