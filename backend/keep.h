/* SPDX-License-Identifier: MIT */
/*
 * How long jobs that are over are kept: those in history for history_keep, and any of them until
 * the spool limit needs the room: the oldest of the history first, then the oldest finished ones
 * in jobs/. What may still run is never removed. I/O thread only.
 */
#ifndef KXFS_BACKEND_KEEP_H
#define KXFS_BACKEND_KEEP_H

#include "backend/impl.h"

struct keep;

/* The implementation's part. */
struct keep_ops {
	/* Does the finished JOB have output on disk that nothing writes to any more? */
	bool (*may_go)(struct backend *b, const struct spec_job *job);
	/* Is something being removed? Then nothing else is, until keep_now or keep_soon. */
	bool (*is_busy)(struct backend *b);
	/* Begin to remove JOB (in jobs/: its output), and call keep_now when that is done. */
	void (*remove)(struct backend *b, const struct spec_job *job);
};

/* The first look is up to keep_soon. NULL: no memory. */
struct keep *keep_new(struct backend *b, const struct keep_ops *ops);
void keep_free(struct keep *keep); /* NULL is allowed */

/*
 * A job has finished, moved to history, or gone: look again in a while; many at once are one look. NULL
 * is allowed: the mount ends.
 */
void keep_soon(struct keep *keep);
void keep_now(struct keep *keep);

#endif
