/* SPDX-License-Identifier: MIT */
/*
 * One stream of one container's log, as the API server sends it ("timestamps=true"): the bytes that
 * the program printed, with the time of each line. A log is fetched by many streams, one after the
 * other, since a stream may break at any byte. Each begins with a repetition of known output, which
 * is compared with the end of the log itself (struct spec_logline_known); only later output is
 * delivered. So every byte is delivered once, however the streams are split and however often they
 * break. Pure; belongs to one thread.
 *
 * A stream is requested from a whole second on, the earliest second of a line in the known end. So
 * it includes all lines of that end, unless they were rotated away, and perhaps earlier lines,
 * which are skipped. overlap.h describes how the end of the repetition is found.
 *
 * Format of a stream: each line that begins in it is preceded by its time and a blank. The runtime
 * cuts lines over 16 KiB into parts with times of their own, which are not in a stream. But because
 * of them a stream may begin in the middle of a line, without a time. A message of the kubelet has
 * no time either: text without a time is never output. Kubelets before 1.26 send the time of each
 * part, also in the middle of a line: a time at a position where the runtime cuts, and not earlier
 * than the part before, is not output, unless a line of this log continued there without one
 * before.
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_LOGLINE_ENTRY 16384 /* bytes after which the runtime cuts a line */

/* A line of the log: it begins at byte AT, and has the time NS since 1970, or 0 if unknown. */
struct spec_line {
	uint64_t at;
	int64_t ns;
};

/*
 * The known end of the log. Plain data: the caller of spec_logline_new fills it in. BYTES are the
 * log's bytes from the offset FROM to SIZE. LINES are in the order of the log; the first of them
 * contains the byte at FROM, or is an earlier one (without LINES no time is known). Adjacent lines
 * with the same time share one record, that of the first of them. After the last record there may
 * be lines with other times, since a crash of the machine may have lost records.
 */
struct spec_logline_known {
	uint64_t from, size;
	char *bytes;
	struct spec_line *lines;
	size_t n_lines;
};

/*
 * The results of earlier streams; all 0 at first. The caller owns it, and keeps it for the next
 * stream.
 */
struct spec_logline_past {
	bool plain; /* a line continued beyond SPEC_LOGLINE_ENTRY without a time there */
	/*
	 * The last stream did not include the known end: with FORCE, accept newer lines of the next
	 * stream without a comparison.
	 */
	bool blind;
	/* The last stream, requested from SINCE on, ended after N bytes, within the known end. */
	bool ended;
	uint64_t n;
	int64_t since;
};

/*
 * Forget the results of earlier streams, since new output has arrived: compare the next stream with
 * the known end again.
 */
void spec_logline_compare_again(struct spec_logline_past *past);

struct spec_logline;

/*
 * Start a stream. KNOWN is taken over: its BYTES and LINES (malloc'ed) are freed as soon as they
 * are not needed any more. PAST is borrowed. With FORCE, a stream that does not include the known
 * end has a gap, and all its newer output is accepted; a stream that may begin in the middle of a
 * known line is assumed to do so. Without FORCE both cases fail with -ESTALE.
 */
struct spec_logline *spec_logline_new(struct spec_logline_known *known, bool force,
				      struct spec_logline_past *past);
void spec_logline_free(struct spec_logline *l);

/*
 * Set *RET_NS to the time (a whole second) from which to request the stream, and return true.
 * Return false if the stream must be requested from the log's start.
 */
bool spec_logline_since(const struct spec_logline *l, int64_t *ret_ns);

/*
 * Called with bytes of output to append; borrowed. NS is the time of the line that began last in
 * the stream. Return 0, or a negative errno to stop the feeding.
 */
typedef int (*spec_logline_fn)(void *data, int64_t ns, const char *bytes, size_t n);

/*
 * Feed the next bytes of the stream. Return 0; -EAGAIN (only with FORCE): some new output was first
 * mistaken for known output, so start another stream; -ESTALE: the stream does not include the
 * known end (it was rotated away, or this is another run's output, or, if the known end does not
 * begin at 0, the clock was set back); or the result of FN.
 */
int spec_logline_feed(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		      void *data);

/*
 * End a complete stream; FN may get its last output. Return 0 if all its output is known now;
 * -EAGAIN if the stream ended within the known end, so that there may be more output; -ESTALE if
 * the stream had no part of the known end; or the result of FN.
 */
int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data);

/* True if output was lost before the delivered output, or may have been (FORCE). */
bool spec_logline_gap(const struct spec_logline *l);
/* If the stream had a message instead of output, return the beginning of that message; else "". */
const char *spec_logline_text(const struct spec_logline *l);
