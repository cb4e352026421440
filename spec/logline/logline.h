/* SPDX-License-Identifier: MIT */
/*
 * Reads one stream of one container's log. The API server sends it ("timestamps=true") as the bytes
 * that the program printed, with a time before each line. A stream may break at any byte, so kxfs
 * fetches a log by several streams, one after the other. Each stream repeats some output that kxfs
 * has already. This module compares that output with the end of the stored log (struct
 * spec_logline_known), and delivers only what follows. So it delivers every byte once, however
 * often streams break. Pure; a stream belongs to one thread.
 *
 * kxfs requests a stream from a given time on: the second in which the earliest line of the known
 * end was printed. So the stream includes all lines of the known end, unless they were rotated
 * away. It may begin with even earlier lines, which this module skips. overlap.h describes how the
 * first new byte is found.
 *
 * Format of a stream: a time and a blank precede each line that begins in the stream. The runtime
 * cuts a line of more than 16 KiB into parts, and records a time for each part. The times of parts
 * are not in the stream, but the kubelet selects the parts to send by these times. So a stream may
 * begin with a later part of a line, which then has no time. A message of the kubelet has no time
 * either. So this module never delivers text without a time.
 *
 * Kubelets before 1.26 also send the time of each part, in the middle of a line. So this module
 * removes a time if it is at a position where the runtime cuts lines, and is not earlier than the
 * time of the part before. It stops doing so once a line of this log has continued at such a
 * position without a time.
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_LOGLINE_ENTRY 16384 /* bytes after which the runtime cuts a line */

/*
 * A line of the log. AT is the offset of its first byte. NS is its time in ns since 1970, or 0 if
 * unknown.
 */
struct spec_line {
	uint64_t at;
	int64_t ns;
};

/*
 * The known end of the log. Plain data: the caller of spec_logline_new fills it in. BYTES are the
 * log's bytes from the offset FROM to SIZE. LINES are in the order of the log. The first one
 * contains the byte at FROM, or is earlier. If there are no LINES, no time is known. Adjacent lines
 * with the same time share one record, which describes the first of them. Lines after the last
 * record may have other times, since a crash of the machine may have lost records.
 */
struct spec_logline_known {
	uint64_t from, size;
	char *bytes;
	struct spec_line *lines;
	size_t n_lines;
};

/*
 * What earlier streams of the log have shown. All members are 0 at first. The caller owns the
 * struct, and keeps it for the next stream.
 */
struct spec_logline_past {
	bool plain; /* true if a line has continued after SPEC_LOGLINE_ENTRY bytes without a time */
	/*
	 * True if the last stream did not include the known end. If the next stream is started with
	 * FORCE, its newer lines are accepted without a comparison.
	 */
	bool blind;
	/*
	 * True if the last stream ended within the known end. It then ended after N bytes, and was
	 * requested from the time SINCE.
	 */
	bool ended;
	uint64_t n;
	int64_t since;
};

/*
 * Call this when new output has arrived. The next stream is then compared with the known end, even
 * if the last stream did not include that end.
 */
void spec_logline_compare_again(struct spec_logline_past *past);

struct spec_logline;

/*
 * Start a stream. Take ownership of KNOWN: its BYTES and LINES (malloc'ed) are freed as soon as
 * they are not needed any more. PAST is borrowed.
 *
 * If FORCE is false, a stream fails with -ESTALE if it does not include the known end, or if it may
 * begin in the middle of a known line. If FORCE is true, a stream without the known end has a gap,
 * and all its newer output is accepted. If FORCE is true, a stream that may begin in the middle of
 * a known line is assumed to do so.
 */
struct spec_logline *spec_logline_new(struct spec_logline_known *known, bool force,
				      struct spec_logline_past *past);
void spec_logline_free(struct spec_logline *l);

/*
 * Return true and set *RET_NS to the time (a whole second) from which to request the stream. Return
 * false if the stream must be requested from the log's start.
 */
bool spec_logline_since(const struct spec_logline *l, int64_t *ret_ns);

/*
 * Called with N bytes of output to append to the log; borrowed. NS is the time of the line that
 * began last. Return 0. If the function returns a negative errno, spec_logline_feed stops and
 * returns it.
 */
typedef int (*spec_logline_fn)(void *data, int64_t ns, const char *bytes, size_t n);

/*
 * Feed the next N bytes of the stream. Return 0; the error of FN; or one of these:
 *   -EAGAIN  (only with FORCE) Some new output was mistaken for known output. Start another stream.
 *   -ESTALE  The stream does not include the known end. Either that end was rotated away, or the
 *            stream is the output of another run. If FROM of the known end is not 0, another
 *            possible cause is that the clock was set back.
 */
int spec_logline_feed(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		      void *data);

/*
 * End a stream that the server has ended without an error. FN may be called with its last output.
 * Return 0 if the log now has all output of the stream; -EAGAIN if the stream ended within the
 * known end, so that there may be more output; -ESTALE if the stream had no part of the known end;
 * or the error of FN.
 */
int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data);

/* True if output before the delivered output was lost or, if FORCE is true, may have been lost. */
bool spec_logline_gap(const struct spec_logline *l);
/* Return the beginning of the message that the stream had instead of output; "" if it had none. */
const char *spec_logline_text(const struct spec_logline *l);
