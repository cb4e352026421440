/* SPDX-License-Identifier: MIT */
/*
 * The texts of snapshots that were rendered last. Who reads a file asks for its size first, and then opens it; and the
 * same file is read again and again by who waits for a job. A snapshot never changes, so its text is made once. FUSE
 * thread only, but for rendered_new and rendered_free.
 */
#pragma once

#include "spec/job/job.h"

struct rendered;

/* Makes a text of JOB and of nothing else; malloc'ed. */
typedef void (*rendered_fn)(const struct spec_job *job, char **ret, size_t *ret_len);

struct rendered *rendered_new(void);
void rendered_free(struct rendered *r); /* NULL is allowed */

/* What FN makes of JOB, malloc'ed. */
void rendered_text(struct rendered *r, const struct spec_job *job, rendered_fn fn, char **ret,
		   size_t *ret_len);
