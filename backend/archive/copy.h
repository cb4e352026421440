/* SPDX-License-Identifier: MIT */
/*
 * Copies one job into the archive. All functions wait for the disk and for DIR. They return 0 or a negative errno;
 * in the second case *WHY or C->why, malloc'ed, is a sentence about the error.
 */
#pragma once

#include <stdatomic.h>

#include "backend/archive/archive.h"

/* A copy. Plain data; everything that it points to is borrowed, except WHY. */
struct copy {
	const struct archive_config *config;
	const char *namespace;
	const struct spec_job *job;
	atomic_bool cancel; /* true: the copy ends with -ECANCELED */
	atomic_ullong
		answered; /* when DIR last answered, by loop_now_ms; 0: no copy is in progress */
	bool cleaned;	  /* old temporary directories were removed */
	char temp[64];	  /* name of the temporary directory in DIR/NAMESPACE, or "" */
	/* Whether the directory of the day has the job. RENAMED: this copy has moved it there. */
	enum { COPY_ABSENT, COPY_THERE, COPY_RENAMED } found;
	bool away; /* the error is about DIR, not about the job */
	char *why;
};

/*
 * Open DIR. A kxfs with STATE_DIR must use the same DIR at each start; its first start writes a file into DIR that
 * identifies it. If STATE_DIR is NULL, only check if DIR is writable. Return a descriptor, which the caller closes.
 */
int copy_open(const char *dir, const char *state_dir, char **why);
/* Make a temporary directory with all files of the job, unless the archive already has the job. */
int copy_make(struct copy *c);
/*
 * Rename the temporary directory to DAY/ID, unless another writer has copied the job there; or,
 * with DROP, remove it.
 */
int copy_finish(struct copy *c, bool drop);
