/* SPDX-License-Identifier: MIT */
/*
 * Copies one job into the archive. All functions may block on the disk of the state directory, and
 * on DIR, which may be on a file server. After an error they return a negative errno, and set *WHY
 * or C->why, malloc'ed, to a sentence about it.
 */
#pragma once

#include <stdatomic.h>

#include "backend/archive/archive.h"

/* The copy of one job. Plain data. It owns WHY; archive.c owns everything else it points to. */
struct copy {
	const struct archive_config *config;
	char *namespace; /* NULL until archive_begin is called */
	const struct spec_job *job;
	atomic_bool cancel;	/* if true, the copy ends with -ECANCELED */
	atomic_ullong answered; /* loop_now_ms() when DIR last responded; 0 if no copy runs */
	bool cleaned;		/* true if old temporary directories were removed */
	char temp[64];		/* name of the temporary directory in DIR/NAMESPACE, or "" */
	/* COPY_THERE: DIR had the job already. COPY_RENAMED: this copy put the job there. */
	enum { COPY_ABSENT, COPY_THERE, COPY_RENAMED } found;
	bool away; /* true if the error is about DIR, not about the job */
	char *why;
};

/*
 * Open DIR, and return a descriptor, which the caller closes. The first start with STATE_DIR and
 * this DIR creates a mark file in DIR. If the mark is missing at the next start, fail, because the
 * path now leads to another directory, for example an empty mount point. If STATE_DIR is NULL,
 * only check that DIR is writable.
 */
int copy_open(const char *dir, const char *state_dir, char **why);
/* Write the job's files to a new temporary directory. If DIR already has the job, do nothing. */
int copy_make(struct copy *c);
/*
 * Rename the temporary directory to DAY/ID. If DROP is true, or if another process has copied the
 * job meanwhile, remove the temporary directory instead.
 */
int copy_finish(struct copy *c, bool drop);
