/* SPDX-License-Identifier: MIT */
/*
 * A cache of recently rendered texts of snapshots. A reader first requests the size of a file, and
 * then opens it; a process that waits for a job reads the same file repeatedly. A snapshot never
 * changes, so its text is made once. FUSE thread only, except rendered_new and rendered_free.
 */
#pragma once

#include "spec/job/job.h"

struct rendered;

/* A function that makes a text that depends only on JOB; malloc'ed. */
typedef void (*rendered_fn)(const struct spec_job *job, char **ret, size_t *ret_len);

struct rendered *rendered_new(void);
void rendered_free(struct rendered *r); /* NULL is allowed */

/* Return the text that FN makes of JOB, malloc'ed. */
void rendered_text(struct rendered *r, const struct spec_job *job, rendered_fn fn, char **ret,
		   size_t *ret_len);
