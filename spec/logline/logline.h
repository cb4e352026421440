/* SPDX-License-Identifier: MIT */
/*
 * Reads one stream of one container's log. The API server sends the log ("timestamps=true") as the
 * bytes that the program printed, with a time before each line. A stream may break at any byte, so
 * kxfs fetches a log by several streams, one after the other. Each stream repeats some output that
 * kxfs already has. This module compares that output with the end of the stored log (struct
 * spec_logline_known), and delivers only newer output. So it delivers every byte once, however
 * often streams break. Pure; a stream belongs to one thread.
 *
 * kxfs requests a stream from a given time on. This time is the second in which the earliest line
 * of the known end was printed. So the stream includes all lines of the known end, unless the
 * kubelet has rotated them away. The stream may begin with even earlier lines, which this module
 * skips. overlap.h describes how this module finds the first new byte.
 *
 * Format of a stream: a time and a blank precede each line that begins in the stream. The runtime
 * cuts a line of more than 16 KiB into parts, and records a time for each part. The times of parts
 * are not in the stream, but the kubelet selects the parts to send by these times. So a stream may
 * begin with a later part of a line, which then has no time. A message of the kubelet has no time
 * either. So this module never delivers text without a time.
 *
 * Kubelets before 1.26 also send the time of each part, in the middle of a line. So this module
 * removes a time if it is at a position where the runtime cuts lines, and is not earlier than the
 * time of the previous part. This module stops removing such times after a line of this log has
 * continued at such a position without a time.
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
 * The known end of the log: its last bytes and their times. Plain data: the caller of
 * spec_logline_new fills it in. BYTES are the bytes from the offset FROM to SIZE. LINES are
 * records, in the order of the log. The first one is for the line that contains the byte at FROM,
 * or for an earlier line. If LINES is empty, no time is known. Adjacent lines with the same time
 * share the record of the first of them. Lines after the last record may have other times, because
 * a crash of the machine may have lost records.
 */
struct spec_logline_known {
	uint64_t from, size;
	char *bytes;
	struct spec_line *lines;
	size_t n_lines;
};

/*
 * What earlier streams of the log have shown. Initially all members are 0. The caller owns the
 * struct, and passes it to spec_logline_new for each stream of the log.
 */
struct spec_logline_past {
	bool plain; /* true if the kubelet does not send the times of a line's parts */
	/*
	 * True if the last stream did not include the known end. If the next stream is started with
	 * FORCE, it accepts lines that are newer than the known end without comparing them.
	 */
	bool blind;
	/*
	 * True if the last stream ended before it had reached the end of the known output. The
	 * stream had N bytes, and kxfs had requested it from the time SINCE.
	 */
	bool ended;
	uint64_t n;
	int64_t since;
};

/*
 * Call this when new output has arrived. Then the next stream is compared with the known end, even
 * if the last stream did not include that end.
 */
void spec_logline_compare_again(struct spec_logline_past *past);

struct spec_logline;

/*
 * Start a stream. Take ownership of KNOWN: its BYTES and LINES (malloc'ed) are freed as soon as the
 * stream does not need them any more. PAST is borrowed.
 *
 * A stream may lack the known end. It may also begin in the middle of a known line. If FORCE is
 * false, the stream fails with -ESTALE in both cases. If FORCE is true, the stream continues: in
 * the first case, it has a gap, and all its newer output is accepted. In the second case, kxfs
 * assumes that it does begin in the middle of that line.
 */
struct spec_logline *spec_logline_new(struct spec_logline_known *known, bool force,
				      struct spec_logline_past *past);
void spec_logline_free(struct spec_logline *l);

/*
 * Return true and set *RET_NS to the time (a whole second) from which the caller must request the
 * stream. Return false if the caller must request the stream from the log's start.
 */
bool spec_logline_since(const struct spec_logline *l, int64_t *ret_ns);

/*
 * Called with N bytes of output to append to the log. BYTES is borrowed. NS is the time of the line
 * that began last. The function returns 0. If it returns a negative errno, spec_logline_feed stops
 * and returns that errno.
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
 * Call this when the server has ended the stream without an error. FN may be called with the last
 * output. Return 0 if the log now has all output of the stream. Return -EAGAIN if the stream ended
 * within the known end; there may then be more output. Return -ESTALE if the stream had no part of
 * the known end. Otherwise return the error of FN.
 */
int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data);

/* True if output before the delivered output was lost; with FORCE, if it may have been lost. */
bool spec_logline_gap(const struct spec_logline *l);
/* True if the stream had the beginning of a line. */
bool spec_logline_has_lines(const struct spec_logline *l);
/*
 * If the stream had a message after its last line, or instead of lines, return the message's
 * beginning; else "". A time that the end of the stream cuts off also counts as a message.
 */
const char *spec_logline_text(const struct spec_logline *l);
