/* SPDX-License-Identifier: MIT */
/*
 * One container's output, out of the streams in which the API server gives it ("timestamps=true"): the
 * bytes that the program printed, each once, whatever the pieces in which they come and however often a
 * stream breaks. A stream is asked for from a whole second on, so that it repeats what is known: where
 * that begins is found by the time of a line, and that it is the same is shown by a hash of all its bytes.
 * Memory does not depend on the log's length. Pure; belongs to one thread.
 *
 * What is remembered: where the last lines began, with their times, and the first line of each of the last
 * seconds. All of it is kept on disk with each write of output, so it is known for whatever is there after a
 * kill. This is enough: where a stream begins with a known line, by its time or with one before those that are
 * remembered, its lines can lie beside the known ones in one way only, and all that is known can be compared;
 * but for equal lines of one time, of which more are taken for known than for new. Of a write that was killed
 * halfway, and after a crash of the machine, when what was kept may be older than the output, some times are
 * missing. Such lines, and the places where lines are cut, are known by their bytes alone: that is enough as long
 * as the stream goes back to a line whose time is known, or to the first, or the bytes do not repeat.
 *
 * What the server does: before each line that begins in the stream stands its time and a blank. The
 * runtime cuts lines over 16 KiB into parts that have times of their own, which show in no stream, but by
 * which a stream may begin in the middle of a line, without a time. A message of the kubelet has none
 * either: text without a time is never output. Kubelets before 1.26 give the time of each part, also in
 * the middle of a line: a time that stands where the runtime cuts, and is no earlier than the part before,
 * is not output, unless a line of this log went on there without one before.
 */
#ifndef KXFS_SPEC_LOGLINE_H
#define KXFS_SPEC_LOGLINE_H

#include "spec/base.h"

struct spec_logline;

/* Nothing is known yet. NULL: no memory. */
struct spec_logline *spec_logline_new(void);
void spec_logline_free(struct spec_logline *l);
static inline void spec_logline_freep(struct spec_logline **l)
{
	spec_logline_free(*l);
}

/* Bytes of output so far: given to the function of spec_logline_feed, or known. */
uint64_t spec_logline_size(const struct spec_logline *l);

/*
 * A stream begins. *RET_NS is the time (a whole second) from which on it is to be asked for; false: from
 * the container's start. FORCE: where it does not show what is known, take what is newer than that
 * all the same, and count a gap; else that is -ESTALE.
 */
bool spec_logline_begin(struct spec_logline *l, bool force, int64_t *ret_ns);

/*
 * Bytes of output, to be appended; borrowed. NS is the time of their line: of the last one that began, as the
 * stream gives it. A negative errno: not taken; it ends the feeding.
 */
typedef int (*spec_logline_fn)(void *data, int64_t ns, const char *bytes, size_t n);

/*
 * The next bytes of the stream. 0; -EAGAIN: they are not what is known, begin another one (which will
 * try another way); -ESTALE: what is known is not in it any more (it was rotated away, or this is
 * another run's output); what FN returned.
 */
int spec_logline_feed(struct spec_logline *l, const char *bytes, size_t n, spec_logline_fn fn,
		      void *data);

/*
 * The stream is over, properly; FN may get the last of it. 0: all that it had is known now. -EAGAIN: it
 * ended within what is known already. -ESTALE: it has none of that. What FN returned.
 */
int spec_logline_end(struct spec_logline *l, spec_logline_fn fn, void *data);

/* What the present stream had instead of output, its beginning; "": nothing, or it had output. */
const char *spec_logline_text(const struct spec_logline *l);
/* How often output was lost, or may have been. */
unsigned spec_logline_gaps(const struct spec_logline *l);
/* The time of the last line that began, ns since 1970; 0: none has. */
int64_t spec_logline_last(const struct spec_logline *l);

/*
 * All this, for the next start of kxfs: SPEC_LOGLINE_SLOT bytes, to be put into that slot (returned) of a file
 * of SPEC_LOGLINE_SLOTS. It is written before the output that it tells of: if kxfs dies in between, the other
 * slot tells how it was before.
 */
#define SPEC_LOGLINE_SLOT  4096
#define SPEC_LOGLINE_SLOTS 2
unsigned spec_logline_save(struct spec_logline *l, char *ret);
/*
 * From such a file (KEPT, LEN bytes, perhaps damaged), of a log of which SIZE bytes are there: what is known is a
 * beginning of them (spec_logline_size), or nothing. The rest is to be told (spec_logline_known), and the whole
 * to be saved before anything else. NULL: no memory.
 */
struct spec_logline *spec_logline_load(const char *kept, size_t len, uint64_t size);
/* Bytes that follow in the output that was kept; before a stream begins. */
void spec_logline_known(struct spec_logline *l, const char *bytes, size_t n);

#endif
