/* SPDX-License-Identifier: MIT */
/*
 * Reads one stream of one container's log. The API server sends the log ("timestamps=true") as the
 * bytes that the program printed, with a time before each line. A stream may break at any byte, so
 * kxfs may need several streams for one log. A later stream repeats output that kxfs already has.
 * This module compares the repeated output with the end of the stored log (struct
 * spec_logline_known), and delivers only newer output, each byte once. Pure; a stream belongs to
 * one thread.
 *
 * A stream usually begins at the second of the earliest line of the known end. It may therefore
 * begin with even earlier lines, which this module skips. overlap.h describes how it finds the
 * first new byte.
 *
 * The runtime cuts a line of more than 16 KiB into parts, and records a time for each part. The
 * stream lacks the times of later parts, although the kubelet selects parts by these times. So a
 * stream may begin in the middle of a line, with text that has no time. Messages of the kubelet
 * have no time either, so text without a time is never delivered.
 */
#pragma once

#include "spec/base/base.h"

/* A line of the log. AT is its offset. NS is in ns since 1970, or 0 if unknown. */
struct spec_line {
	uint64_t at;
	int64_t ns;
};

/*
 * The known end of the log. BYTES has the bytes from the offset FROM to SIZE. LINES are records in
 * the order of the log. The first record is for the line that contains the byte at FROM, or for an
 * earlier line. Adjacent lines with the same time share the record of the first of them. Lines
 * after the last record may have other times, because a crash of the machine may have lost records.
 * Without LINES, no time is known. Plain data.
 */
struct spec_logline_known {
	uint64_t from, size;
	char *bytes;
	struct spec_line *lines;
	size_t n_lines;
};

/* What kxfs remembers of earlier streams of the log, which share it; initially all 0. */
struct spec_logline_past {
	/*
	 * True if the last stream lacked the known end, and newer output was mistaken for known
	 * output. With FORCE, the next stream accepts all lines that are newer than the known end.
	 */
	bool blind;
	/*
	 * True if an earlier stream ended before the first byte that was certainly new. It was
	 * requested from SINCE, and had N bytes.
	 */
	bool ended;
	uint64_t n;
	int64_t since;
};

/* Clear BLIND. Call this when new output has arrived. */
void spec_logline_compare_again(struct spec_logline_past *past);

struct spec_logline;

/*
 * Start a stream. Take ownership of the BYTES and LINES of KNOWN (malloc'ed). PAST is borrowed.
 *
 * The stream may lack the known end, or may begin in the middle of a known line. It then fails with
 * -ESTALE, unless FORCE is true. With FORCE, a stream without the known end has a gap, and all its
 * newer output is accepted; a stream that seems to begin in the middle of a line is assumed to do
 * so.
 */
struct spec_logline *spec_logline_new(struct spec_logline_known *known, bool force,
				      struct spec_logline_past *past);
void spec_logline_free(struct spec_logline *l);

/* Set the second (in ns) from which to request the stream. Return false for the log's start. */
bool spec_logline_since(const struct spec_logline *l, int64_t *ret_ns);

/* Append output. NS is the time of the line that began last. Return a negative errno to stop. */
typedef int (*spec_logline_fn)(void *data, int64_t ns, const char *bytes, size_t n);

/*
 * Feed the next N bytes of the stream. Return 0, the error of FN, or one of these:
 *   -EAGAIN  (only with FORCE) Some new output was mistaken for known output. Start another stream.
 *   -ESTALE  The stream does not include the known end. That end was rotated away, or the stream is
 *            the output of another run, or (only if FROM is not 0) the clock was set back.
 */
int spec_logline_feed(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		      void *data);

/*
 * Call this when the server has ended the stream without an error. FN may be called with the last
 * output. Return 0 if the log now has all output of the stream, or the error of FN. Return -EAGAIN
 * if there may be more output, because the stream ended within the known end. Return -ESTALE if the
 * stream had no part of the known end.
 */
int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data);

/* True if output may have been lost before the first delivered byte (only with FORCE). */
bool spec_logline_gap(const struct spec_logline *l);
/* True if a line has begun in the stream. */
bool spec_logline_has_lines(const struct spec_logline *l);
/* Return the beginning of the message, or of the cut-off time, after the last line; or "". */
const char *spec_logline_text(const struct spec_logline *l);
