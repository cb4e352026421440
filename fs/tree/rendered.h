/* SPDX-License-Identifier: MIT */
/*
 * Keeps the texts of snapshots that were rendered last. Whoever reads a file asks for its size first, and then opens
 * it; and whoever waits for a job reads the same file again and again. A snapshot never changes, so its text is made
 * once. FUSE thread only, but for rendered_new and rendered_free.
 */
#pragma once

#include "spec/job/job.h"

struct rendered;

/* A function that makes a text of JOB and of nothing else; malloc'ed. */
typedef void (*rendered_fn)(const struct spec_job *job, char **ret, size_t *ret_len);

struct rendered *rendered_new(void);
void rendered_free(struct rendered *r); /* NULL is allowed */

/* The text that FN makes of JOB, malloc'ed. */
void rendered_text(struct rendered *r, const struct spec_job *job, rendered_fn fn, char **ret,
		   size_t *ret_len);
