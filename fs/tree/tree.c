/* SPDX-License-Identifier: MIT */
/* Wakes the open streams that a backend event concerns. I/O thread. */
#include "fs/tree/tree.h"

#include "fs/tree/job.h"

struct job_event {
	const struct spec_job *old, *job;
};

static void tree_on_job(struct stream *s, void *data)
{
	const struct job_event *e = data;
	const struct spec_job *job = e->job ? e->job : e->old;

	if (changes_job_event(s, e->old, e->job) || wait_is_of(s, job) || follow_is_of(s, job))
		stream_wake(s);
}

void tree_job_event(void *data, const struct spec_job *old, const struct spec_job *job)
{
	struct tree *t = data;
	struct job_event e = {old, job};

	streams_visit(t->fs, tree_on_job, &e);
}

static void tree_on_log(struct stream *s, void *data)
{
	if (follow_reads(s, data))
		stream_wake(s);
}

void tree_log_event(void *data, struct log *log)
{
	struct tree *t = data;

	streams_visit(t->fs, tree_on_log, log);
}
