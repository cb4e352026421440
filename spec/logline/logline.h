/* SPDX-License-Identifier: MIT */
/*
 * One stream of one container's log, as the API server gives it ("timestamps=true"): the bytes that the program
 * printed, with the time of each line. A log is fetched by many streams, one after the other, since a stream may
 * break at any byte. Each begins with a repetition of what is known already, which is compared with the end of
 * the log itself (struct spec_logline_known); only what comes after that is given out. So every byte is given out
 * once, in whatever pieces the streams come and however often they break. Pure; belongs to one thread.
 *
 * A stream is asked for from a whole second on, the earliest second of a line in the known end. So it shows all lines
 * of that end, unless they were rotated away, and perhaps lines from before it, which are skipped. overlap.h says
 * how the end of the repetition is found.
 *
 * What the server does: before each line that begins in the stream stand its time and a blank. The runtime
 * cuts lines over 16 KiB into parts that have times of their own, which show in no stream, but because of which a
 * stream may begin in the middle of a line, without a time. A message of the kubelet has no time either: text
 * without a time is never output. Kubelets before 1.26 give the time of each part, also in the middle of a line: a
 * time that stands where the runtime cuts, and is no earlier than the part before, is not output, unless a line
 * of this log went on there without one before.
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_LOGLINE_ENTRY 16384 /* bytes in which the runtime cuts a line */

/* A line of the log: it begins at byte AT, and has the time NS since 1970; 0: that is not known. */
struct spec_line {
	uint64_t at;
	int64_t ns;
};

/*
 * The end of the log, as far as it is known. Plain data: whoever reads the log fills it in for spec_logline_new. BYTES
 * are those from FROM to SIZE. LINES are in the order of the log; the first of them is the one in which FROM lies, or
 * one before it (no lines: no time is known). Lines of one time share the record of the first of them; for the last
 * record it is not certain that the lines after it share its time, since a crash of the machine may have lost records.
 */
struct spec_logline_known {
	uint64_t from, size;
	char *bytes;
	struct spec_line *lines;
	size_t n_lines;
};

/* What earlier streams have shown; all 0 at first. It belongs to the caller, who keeps it for the next stream. */
struct spec_logline_past {
	bool plain; /* a line went on beyond SPEC_LOGLINE_ENTRY without a time there */
	/* The known end is not there: with FORCE newer output is taken without a comparison. */
	bool blind;
	/* The last stream ended within the known end, after N bytes, when it was asked for from SINCE on. */
	bool ended;
	uint64_t n;
	int64_t since;
};

/* Output has come since: the next stream is compared with the known end, whatever earlier ones have shown. */
void spec_logline_compare_again(struct spec_logline_past *past);

struct spec_logline;

/*
 * A stream begins. KNOWN is taken over: its BYTES and LINES (malloc'ed) are freed as soon as they are not needed any
 * more. FORCE: if the stream does not show the known end, take all newer output all the same, and count a gap; and if
 * it may begin in the middle of a known line, assume that it does. Without FORCE both are -ESTALE. PAST is borrowed.
 */
struct spec_logline *spec_logline_new(struct spec_logline_known *known, bool force,
				      struct spec_logline_past *past);
void spec_logline_free(struct spec_logline *l);

/* Set *RET_NS to the time (a whole second) from which on the stream is to be asked for; false: from the log's start. */
bool spec_logline_since(const struct spec_logline *l, int64_t *ret_ns);

/*
 * Bytes of output, to be appended; borrowed. NS is the time of their line: of the last one that began, as the stream
 * gives it. Returns 0; or a negative errno if they are not taken, which ends the feeding.
 */
typedef int (*spec_logline_fn)(void *data, int64_t ns, const char *bytes, size_t n);

/*
 * Feed the next bytes of the stream. 0; -EAGAIN (only with FORCE): some new output was first taken for known, so begin
 * another stream; -ESTALE: the stream does not show the known end (it was rotated away, or this is another run's
 * output, or, if the known end does not begin at 0, the clock was set back); or what FN returned.
 */
int spec_logline_feed(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		      void *data);

/*
 * The stream has ended in order; FN may get the last of it. 0: all that it had is known now. -EAGAIN: it ended within
 * the known end, so there may be more. -ESTALE: it has nothing of that. Or what FN returned.
 */
int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data);

/* Was output lost before what was given out, or may it have been (FORCE)? */
bool spec_logline_gap(const struct spec_logline *l);
/* The beginning of the text that the stream had instead of output; "": there was none, or it had output. */
const char *spec_logline_text(const struct spec_logline *l);
