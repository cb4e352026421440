/* SPDX-License-Identifier: MIT */
/*
 * The snapshot that a job's object and its pods make: which pods are whose, and all replicas. What they
 * say of the job together is in view_verdict.c.
 */
#include <errno.h>

#include "spec/view_impl.h"

/* --- pods ------------------------------------------------------------------------------------ */

/* Index of the replica that POD is of; SIZE_MAX: none. */
static size_t slot_of(const struct spec_job_view *view, const struct spec_pod_view *pod)
{
	size_t low = 0, high = view->n_tasks;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct spec_task_view *task = &view->tasks[view->by_name[middle]];
		int diff = strcmp(pod->task, task->name);

		if (diff == 0)
			return pod->index < task->n ? task->first + pod->index : SIZE_MAX;
		if (diff < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return SIZE_MAX;
}

struct slotted {
	size_t slot;
	const struct spec_pod_view *pod;
};

static int compare(int64_t a, int64_t b)
{
	return a < b ? -1 : a > b;
}

/* By replica, then by age. Times have whole seconds only: then what is gone was first. */
static int by_age(const void *a, const void *b)
{
	const struct slotted *x = a, *y = b;
	int diff = compare((int64_t)x->slot, (int64_t)y->slot);

	diff = diff ? diff : compare(x->pod->meta.created, y->pod->meta.created);
	diff = diff ? diff : compare(x->pod->retry, y->pod->retry);
	diff = diff ? diff : y->pod->gone - x->pod->gone;
	diff = diff ? diff : (y->pod->meta.deleted != 0) - (x->pod->meta.deleted != 0);
	return diff ? diff : strcmp(x->pod->meta.uid, y->pod->meta.uid);
}

static int sort_pods(struct spec_making *s, const struct spec_pod_view *const *pods, size_t n)
{
	struct slotted *sorted cleanup_free = calloc(n + 1, sizeof(*sorted));

	s->pods = calloc(n + 1, sizeof(struct spec_pod_view *));
	s->slots = calloc(n + 1, sizeof(*s->slots));
	if (!sorted || !s->pods || !s->slots)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		size_t slot = slot_of(s->view, pods[i]);

		if (slot != SIZE_MAX)
			sorted[s->n++] = (struct slotted){slot, pods[i]};
	}
	qsort(sorted, s->n, sizeof(*sorted), by_age);
	for (size_t i = 0; i < s->n; i++) {
		s->pods[i] = sorted[i].pod;
		s->slots[i] = sorted[i].slot;
	}
	return 0;
}

/* --- roles and replicas ------------------------------------------------------------------------ */

static int fill_role(struct spec_role_status *role, const struct spec_role_view *from)
{
	role->desired = from->desired;
	role->minimum = from->minimum;
	role->first = from->first;
	role->n = from->n;
	return spec_set(&role->name, from->name);
}

/* The replica of before that is in the same place. */
static const struct spec_replica *before_of(const struct spec_making *s, size_t slot,
					    const char *name)
{
	const struct spec_job *before = s->ctx->before;

	if (!before)
		return NULL;
	if (slot < before->n_replicas && streq(before->replicas[slot].name, name))
		return &before->replicas[slot];
	return spec_job_replica(before, name);
}

static int fill_replica(struct spec_making *s, const struct spec_task_view *task, unsigned k,
			struct spec_runs runs)
{
	size_t slot = task->first + k;
	struct spec_replica *r = &s->job->replicas[slot];
	char *name cleanup_free = NULL;

	r->role = task->role;
	r->id = task->replica + k;
	if (asprintf(&name, "%s-%u", s->view->roles[task->role].dir, r->id) < 0) {
		name = NULL;
		return -ENOMEM;
	}
	if (spec_set(&r->name, name) < 0)
		return -ENOMEM;
	return spec_replica_fill(r, runs, s->view, &s->standing, before_of(s, slot, name));
}

static int fill_replicas(struct spec_making *s)
{
	size_t at = 0;

	for (size_t i = 0; i < s->view->n_tasks; i++) {
		const struct spec_task_view *task = &s->view->tasks[i];

		for (unsigned k = 0; k < task->n; k++) {
			struct spec_runs runs = {.v = &s->pods[at]};
			int err;

			for (; at < s->n && s->slots[at] == task->first + k; at++)
				runs.n++;
			err = fill_replica(s, task, k, runs);
			if (err)
				return err;
		}
	}
	return 0;
}

/* --- the whole --------------------------------------------------------------------------------- */

static int fill_texts(struct spec_job *job, const struct spec_job_view *v,
		      const struct spec_view_context *ctx)
{
	if (spec_set(&job->id, v->meta.name) < 0 || spec_set(&job->uid, v->meta.uid) < 0 ||
	    spec_set(&job->app, v->app) < 0 || spec_set(&job->phase, v->phase) < 0 ||
	    spec_set(&job->backend, ctx->kind->name) < 0 ||
	    spec_set(&job->namespace, ctx->namespace) < 0 || spec_set(&job->queue, v->queue) < 0 ||
	    spec_set(&job->submitter, v->submitter) < 0 ||
	    spec_set(&job->submission, v->submission) < 0)
		return -ENOMEM;
	return 0;
}

static int fill(struct spec_making *s)
{
	struct spec_job *job = s->job;
	int err = fill_texts(job, s->view, s->ctx);

	job->own = s->ctx->own;
	job->history = s->ctx->history;
	job->stale_since = s->ctx->stale_since;
	job->has_appdef = s->view->has_appdef;
	job->retries = s->view->retries;
	job->max_retries = s->view->max_retries;
	job->created = s->view->meta.created;
	for (size_t i = 0; !err && i < job->n_roles; i++)
		err = fill_role(&job->roles[i], &s->view->roles[i]);
	if (!err)
		err = fill_replicas(s);
	return err ? err : spec_making_conclude(s);
}

struct spec_job *spec_view_job(const struct spec_job_view *view,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx)
{
	cleanup_job struct spec_job *job = spec_job_new(view->n_roles, view->n_replicas);
	struct spec_making s = {.view = view, .ctx = ctx, .job = job};
	int err = job ? sort_pods(&s, pods, n_pods) : -ENOMEM;

	if (!err) {
		spec_making_stand(&s);
		err = fill(&s);
	}
	free(s.pods);
	free(s.slots);
	return err ? NULL : take_ptr(job);
}
