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
 * The known end of the log. Plain data: the reader of the log fills it in for spec_logline_new.
 * BYTES are those from FROM to SIZE. LINES are in the order of the log; the first of them is the
 * one that contains FROM, or one before it (no lines: no time is known). Lines of one time share
 * the record of the first of them; for the last record it is not certain that the lines after it
 * share its time, since a crash of the machine may have lost records.
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
	 * The known end is not available: with FORCE newer output is accepted without a comparison.
	 */
	bool blind;
	/*
	 * The last stream ended within the known end, after N bytes, when it was requested from
	 * SINCE on.
	 */
	bool ended;
	uint64_t n;
	int64_t since;
};

/*
 * Output has arrived since: compare the next stream with the known end, regardless of earlier ones.
 */
void spec_logline_compare_again(struct spec_logline_past *past);

struct spec_logline;

/*
 * Start a stream. KNOWN is taken over: its BYTES and LINES (malloc'ed) are freed as soon as they
 * are not needed any more. FORCE: if the stream does not include the known end, accept all newer
 * output anyway, and count a gap; and if it may begin in the middle of a known line, assume that it
 * does. Without FORCE both are -ESTALE. PAST is borrowed.
 */
struct spec_logline *spec_logline_new(struct spec_logline_known *known, bool force,
				      struct spec_logline_past *past);
void spec_logline_free(struct spec_logline *l);

/*
 * Set *RET_NS to the time (a whole second) from which to request the stream; return false: from the
 * log's start.
 */
bool spec_logline_since(const struct spec_logline *l, int64_t *ret_ns);

/*
 * Bytes of output, to be appended; borrowed. NS is the time of their line: of the last one that
 * began in the stream. Return 0, or a negative errno to end the feeding.
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
 * End the stream, which was complete; FN may get the last of it. Return 0: all its output is known
 * now. -EAGAIN: it ended within the known end, so there may be more. -ESTALE: it has none of that.
 * Or the result of FN.
 */
int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data);

/* True if output was lost before the delivered output, or may have been (FORCE). */
bool spec_logline_gap(const struct spec_logline *l);
/* If the stream had a message instead of output, return the beginning of that message; else "". */
const char *spec_logline_text(const struct spec_logline *l);
