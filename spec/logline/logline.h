/* SPDX-License-Identifier: MIT */
/*
 * Reads one stream of one container's log. The API server sends the log ("timestamps=true") as the
 * bytes that the program printed, with a time before each line. A stream may break at any byte, so
 * kxfs may need several streams for one log. A later stream repeats output that kxfs already has.
 * This module compares the repeated output with the end of the stored log (struct
 * spec_logline_known), and delivers only newer output, each byte once. Pure; a stream belongs to
 * one thread.
 *
 * kxfs usually requests a later stream from a whole second on: the second of the earliest line in
 * this known end. So the stream may begin with even earlier lines, which this module skips.
 * overlap.h describes how it finds the first new byte.
 *
 * The runtime cuts a line of more than 16 KiB into parts, and records a time for each part. The
 * kubelet selects the parts of a stream by these times, but prints only the time of a line's first
 * part. So a stream may begin in the middle of a line, with text that has no time. Messages of the
 * kubelet have no time either. This module never delivers text without a time.
 */
#pragma once

#include "spec/base/base.h"

/* A line of the log. AT is its offset. NS is its time in ns since 1970; 0 if unknown. */
struct spec_line {
	uint64_t at;
	int64_t ns;
};

/*
 * The known end of the log: the last bytes that kxfs has stored. BYTES has the bytes from the
 * offset FROM to the offset SIZE, which is the size of the stored log. LINES has the times of the
 * lines, in the order of the log. If adjacent lines have the same time, only the first of them has
 * a record. So the first record may be for a line before FROM. A crash of the machine may have lost
 * the last records: lines after the last record may have other times. If LINES is empty, no time is
 * known. Plain data.
 */
struct spec_logline_known {
	uint64_t from, size;
	char *bytes;
	struct spec_line *lines;
	size_t n_lines;
};

/*
 * What this module remembers of the earlier streams of a log. All streams of a log share one
 * struct. Zero it before the first stream.
 */
struct spec_logline_past {
	/*
	 * True if the last stream lacked the known end, but some of its new lines were mistaken for
	 * known lines. If the next stream has FORCE, it does not compare a line that is newer than
	 * the known end, but delivers it and all later output.
	 */
	bool blind;
	/*
	 * True if a stream has ended before it had a byte that was certainly new. The last such
	 * stream was requested from the time SINCE, and had N bytes. If another stream ends at the
	 * same byte, this module assumes that the log ends there.
	 */
	bool ended;
	uint64_t n;
	int64_t since;
};

/* Set BLIND to false. Call this when new output has arrived. */
void spec_logline_compare_again(struct spec_logline_past *past);

struct spec_logline;

/*
 * Start a stream. Take ownership of the BYTES and LINES of KNOWN (malloc'ed). PAST is borrowed.
 *
 * A stream may lack the known end, or may seem to begin in the middle of a known line. If FORCE is
 * false, such a stream fails with -ESTALE. With FORCE, this module assumes that a stream that lacks
 * the known end has a gap, and delivers all its newer output. If a stream seems to begin in the
 * middle of a known line, the module assumes that it does.
 */
struct spec_logline *spec_logline_new(struct spec_logline_known *known, bool force,
				      struct spec_logline_past *past);
void spec_logline_free(struct spec_logline *l);

/*
 * Set *RET_NS to the time (a whole second, in ns) from which the caller must request the stream.
 * Return false if it must request the stream from the start of the log.
 */
bool spec_logline_since(const struct spec_logline *l, int64_t *ret_ns);

/*
 * A callback that appends output to the log. NS is the time of the line that began last. Return 0,
 * or a negative errno to stop.
 */
typedef int (*spec_logline_fn)(void *data, int64_t ns, const char *bytes, size_t n);

/*
 * Feed the next N bytes of the stream. Return 0, the error of FN, or one of these:
 *   -EAGAIN  (only with FORCE) Some new output was mistaken for known output. Start another stream.
 *   -ESTALE  The stream does not include the known end. Perhaps the kubelet has rotated it away, or
 *            the stream is the output of another run. If FROM is not 0, another possible reason is
 *            that the clock was set back.
 */
int spec_logline_feed(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		      void *data);

/*
 * Call this when the server has ended the stream without an error. This function may call FN with
 * the last output. Return 0 if the log now has all output of the stream, or the error of FN. Return
 * -EAGAIN if the stream ended within the known end, or with bytes that may be new or known: the log
 * may have more output, so start another stream. Return -ESTALE if the stream had no part of the
 * known end.
 */
int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data);

/* True if output may have been lost before the first delivered byte (only with FORCE). */
bool spec_logline_gap(const struct spec_logline *l);
/* True if a line has begun in the stream. */
bool spec_logline_has_lines(const struct spec_logline *l);
/*
 * Return the beginning of the text without a time after the last line: a message, or a time that is
 * cut off. Return "" if there is no such text.
 */
const char *spec_logline_text(const struct spec_logline *l);
