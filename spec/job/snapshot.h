/* SPDX-License-Identifier: MIT */
/*
 * A snapshot of a job as text for the state directory, and back: thus a job with captured output is
 * known after the cluster has deleted it.
 */
#pragma once

#include "spec/job/job.h"

/* Return the text of JOB: JSON with a newline at its end; malloc'ed. */
char *spec_snapshot_text(const struct spec_job *job);

/*
 * Parse TEXT, which may be anything (the disk is untrusted). Return 0 and a packed job with one
 * reference, to be published; -ENOTSUP: another version of kxfs wrote it; -EINVAL: it is damaged.
 */
int spec_snapshot_parse(const char *text, size_t len, struct spec_job **ret);
