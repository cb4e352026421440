/* SPDX-License-Identifier: MIT */
/*
 * The snapshot that a job's object and its pods make. The controller's word on the job comes first;
 * where it is missing or behind, the pods decide.
 */
#include <errno.h>

#include "spec/view_impl.h"

struct snapshot {
	const struct spec_job_view *view;
	const struct spec_view_context *ctx;
	const struct spec_phase *phase; /* NULL: none, or an unknown one */
	struct spec_standing standing;
	struct spec_job *job;
	/* Its pods, by replica; those of one replica oldest first. */
	const struct spec_pod_view **pods;
	size_t *slots;
	size_t n;
};

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

static int sort_pods(struct snapshot *s, const struct spec_pod_view *const *pods, size_t n)
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
static const struct spec_replica *before_of(const struct snapshot *s, size_t slot, const char *name)
{
	const struct spec_job *before = s->ctx->before;

	if (!before)
		return NULL;
	if (slot < before->n_replicas && streq(before->replicas[slot].name, name))
		return &before->replicas[slot];
	return spec_job_replica(before, name);
}

static int fill_replica(struct snapshot *s, const struct spec_task_view *task, unsigned k,
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

static int fill_replicas(struct snapshot *s)
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

/* --- the state of the job ---------------------------------------------------------------------- */

static const struct spec_phase *phase_of(const struct snapshot *s)
{
	for (const struct spec_phase *p = s->ctx->kind->reader->phases; p->name; p++)
		if (streq(p->name, s->view->phase))
			return p;
	return NULL;
}

static bool any(const struct spec_job *job, enum spec_state state)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (job->replicas[i].state == state)
			return true;
	return false;
}

static bool all_succeeded(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (job->replicas[i].state != SPEC_SUCCEEDED)
			return false;
	return job->n_replicas > 0;
}

/* Before the replicas are known: may they start again? */
static void set_standing(struct snapshot *s)
{
	const struct spec_job *before = s->ctx->before;
	bool final = s->phase && spec_state_is_final(s->phase->state);
	bool suspended = s->phase && s->phase->suspended;

	s->standing.over = s->ctx->history || (final && !suspended);
	s->standing.ending = s->phase && s->phase->ending;
	s->standing.cancelled =
		s->ctx->history ? !final || suspended : final && s->phase->state == SPEC_CANCELLED;
	if (before && before->finished)
		s->standing.ended = before->finished;
	else
		s->standing.ended = final && s->view->changed ? s->view->changed : s->ctx->now;
}

/* And after. */
static enum spec_state job_state(const struct snapshot *s)
{
	bool succeeded = all_succeeded(s->job);

	if (s->phase && spec_state_is_final(s->phase->state))
		return s->phase->state;
	if (succeeded && !s->standing.ending)
		return SPEC_SUCCEEDED;
	if (s->ctx->history)
		return SPEC_CANCELLED;
	if (s->phase)
		return s->phase->state;
	if (*s->view->phase)
		return SPEC_UNKNOWN;
	if (any(s->job, SPEC_RUNNING))
		return SPEC_RUNNING;
	return s->n > 0 ? SPEC_PENDING : SPEC_SUBMITTED;
}

/* --- why --------------------------------------------------------------------------------------- */

/* The replica that tells why the job is as it is; NULL: none does. */
static const struct spec_replica *spokesman(const struct spec_job *job)
{
	const struct spec_replica *ret = NULL;

	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		if (job->state == SPEC_FAILED) {
			/* The first that failed. */
			if (r->state == SPEC_FAILED &&
			    (!ret || (r->finished && r->finished < ret->finished)))
				ret = r;
		} else if (r->state == SPEC_PENDING && *r->message && !ret) {
			ret = r;
		}
	}
	return ret;
}

static int say(struct spec_job *job, const char *reason, const char *message)
{
	return spec_set(&job->reason, reason) < 0 || spec_set(&job->message, message) < 0 ? -ENOMEM
											  : 0;
}

static int say_replica(struct spec_job *job, const struct spec_replica *r)
{
	char *text cleanup_free = NULL;

	if (asprintf(&text, "%s%s%s", r->name, *r->message ? ": " : "", r->message) < 0) {
		text = NULL;
		return -ENOMEM;
	}
	return say(job, r->reason, text);
}

static int explain(struct snapshot *s)
{
	struct spec_job *job = s->job;
	const struct spec_replica *r = spokesman(job);

	if (*s->view->reason || *s->view->message)
		return say(job, s->view->reason, s->view->message);
	switch (job->state) {
	case SPEC_SUCCEEDED:
		return say(job, "Completed", "");
	case SPEC_CANCELLED:
		return job->suspended ? say(job, "Suspended", "")
				      : say(job, "Deleted", "it was removed from the cluster");
	case SPEC_UNKNOWN:
		return say(job, "UnknownPhase", "this version of kxfs does not know the phase");
	case SPEC_FAILED:
		if (r && !streq(job->phase, "Terminated"))
			return say_replica(job, r);
		return say(job, job->phase, "");
	default:
		return r ? say_replica(job, r) : 0;
	}
}

/* --- times --------------------------------------------------------------------------------------- */

static int64_t earliest(int64_t a, int64_t b)
{
	return !a || (b && b < a) ? b : a;
}

static int64_t started(const struct snapshot *s)
{
	int64_t ret = s->ctx->before ? s->ctx->before->started : 0;

	for (size_t i = 0; i < s->n; i++) {
		const struct spec_container_view *c = spec_pod_main(s->pods[i]);

		ret = earliest(ret, c ? c->started : 0);
	}
	return ret;
}

static int64_t finished(const struct snapshot *s)
{
	const struct spec_job *before = s->ctx->before;
	int64_t ret = 0;

	if (!spec_state_is_final(s->job->state) || s->job->suspended)
		return 0;
	if (before && before->state == s->job->state && before->finished)
		return before->finished;
	if (s->standing.over)
		return s->standing.ended;
	for (size_t i = 0; i < s->job->n_replicas; i++)
		ret = max_of(ret, s->job->replicas[i].finished);
	return ret ? ret : s->ctx->now;
}

static bool same_replica(const struct spec_replica *a, const struct spec_replica *b)
{
	return a->state == b->state && a->exit_code == b->exit_code && a->attempt == b->attempt &&
	       streq(a->reason, b->reason) && streq(a->message, b->message) &&
	       streq(a->pod, b->pod);
}

static bool same(const struct spec_job *a, const struct spec_job *b)
{
	if (a->state != b->state || a->n_replicas != b->n_replicas || a->history != b->history ||
	    !streq(a->reason, b->reason) || !streq(a->message, b->message))
		return false;
	for (size_t i = 0; i < a->n_replicas; i++)
		if (!same_replica(&a->replicas[i], &b->replicas[i]))
			return false;
	return true;
}

/* Of a job that is seen for the first time: as the objects say. */
static int64_t changed(const struct snapshot *s)
{
	int64_t ret = max_of(s->job->created, s->view->changed);

	if (s->ctx->before)
		return same(s->job, s->ctx->before) ? s->ctx->before->changed : s->ctx->now;
	for (size_t i = 0; i < s->n; i++) {
		const struct spec_container_view *c = spec_pod_main(s->pods[i]);

		ret = max_of(ret, s->pods[i]->meta.created);
		ret = max_of(ret, c ? c->started : 0);
		ret = max_of(ret, c ? c->finished : 0);
	}
	return ret ? ret : s->ctx->now;
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

static int fill(struct snapshot *s)
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
	if (err)
		return err;
	job->state = job_state(s);
	job->suspended = s->phase && s->phase->suspended && !job->history;
	err = explain(s);
	job->started = started(s);
	job->finished = finished(s);
	job->changed = changed(s);
	return err;
}

struct spec_job *spec_view_job(const struct spec_job_view *view,
			       const struct spec_pod_view *const *pods, size_t n_pods,
			       const struct spec_view_context *ctx)
{
	cleanup_job struct spec_job *job = spec_job_new(view->n_roles, view->n_replicas);
	struct snapshot s = {.view = view, .ctx = ctx, .job = job};
	int err = job ? sort_pods(&s, pods, n_pods) : -ENOMEM;

	if (!err) {
		s.phase = phase_of(&s);
		set_standing(&s);
		err = fill(&s);
	}
	free(s.pods);
	free(s.slots);
	return err ? NULL : take_ptr(job);
}
