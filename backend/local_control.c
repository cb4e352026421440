// SPDX-License-Identifier: MIT
/*
 * Requests about a job that exists: cancel, control, forget. What concerns running processes is
 * done at once; the answer comes when the published job shows it (struct local_wait). A job that
 * is only on disk is changed there (local_cold.c).
 */
#include <errno.h>
#include <utlist.h>

#include "backend/local.h"

#define CONTROL_WAIT_MS 5000

static void wait_answer(struct local_wait *w)
{
	struct backend_request *rq = w->rq;
	struct local_job *job = w->job;

	DL_DELETE(job->waits, w);
	loop_timer_free(w->timer);
	free(w);
	backend_answer(rq, 0, job->rec->id, NULL);
}

static void wait_timeout(void *data)
{
	wait_answer(data);
}

int local_wait_add(struct local_job *job, int kind, struct backend_request *rq)
{
	struct local_wait *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->job = job;
	w->rq = rq;
	w->kind = kind;
	if (kind == LOCAL_WAIT_CONTROL) {
		w->timer = loop_timer_new(job->l->b->loop, CONTROL_WAIT_MS, 0, wait_timeout, w);
		if (!w->timer) {
			free(w);
			return -ENOMEM;
		}
	}
	DL_APPEND(job->waits, w);
	return 0;
}

static bool is_fulfilled(const struct local_wait *w, const struct spec_job *snap)
{
	bool final = spec_state_is_final(snap->state) && !snap->suspended;

	switch (w->kind) {
	case LOCAL_WAIT_SUBMIT:
		return true;
	case LOCAL_WAIT_CANCEL:
		return snap->history;
	case LOCAL_WAIT_FORGET:
		return false;
	case LOCAL_WAIT_CONTROL:
		break;
	}
	switch (w->rq->action) {
	case SPEC_SUSPEND:
		return snap->suspended || final;
	case SPEC_RESUME:
		return !snap->suspended;
	case SPEC_RESTART:
		return final || streq(snap->phase, "Running");
	default:
		return final;
	}
}

void local_wait_check(struct local_job *job, const struct spec_job *snap)
{
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(job->waits, w, next)
		if (is_fulfilled(w, snap))
			wait_answer(w);
}

void local_wait_retired(struct local_job *job)
{
	const struct spec_job *snap = store_get_uid(job->l->b->store, job->rec->uid);
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(job->waits, w, next) {
		if (w->kind == LOCAL_WAIT_FORGET && snap) {
			DL_DELETE(job->waits, w);
			local_cold_add(job->l, LOCAL_COLD_FORGET, snap, w->rq);
			free(w);
		} else {
			wait_answer(w);
		}
	}
	spec_job_unref(snap);
}

/* The job that RQ names, in PLACE; else RQ is answered. A new reference. */
static const struct spec_job *find(struct backend *b, enum backend_place place,
				   struct backend_request *rq)
{
	const struct spec_job *job = store_get(b->store, place, rq->id);

	if (job && streq(job->uid, rq->uid))
		return job;
	if (job)
		backend_answer(rq, -ESTALE, NULL, "another job has this name by now");
	else
		backend_answer(rq, -ENOENT, NULL, "there is no such job any more");
	spec_job_unref(job);
	return NULL;
}

void local_cancel(struct backend *b, struct backend_request *rq)
{
	struct local *l = local_of(b);
	cleanup_job const struct spec_job *snap = find(b, BACKEND_JOBS, rq);
	struct local_job *job;

	if (!snap)
		return;
	job = local_job_find(l, rq->id);
	if (!job) {
		local_cold_add(l, LOCAL_COLD_CANCEL, snap, rq);
		return;
	}
	if (local_wait_add(job, LOCAL_WAIT_CANCEL, rq) < 0) {
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	job->rec->history = true;
	if (job->over)
		local_job_touch(job);
	else
		local_job_end(job, LOCAL_CANCEL);
}

/* --- control --- */

static void signal_all(struct local_job *job, int sig)
{
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		if (job->reps[i].step == LOCAL_RUNNING)
			local_process_signal(&job->reps[i], sig);
	local_scan_signal(job, sig);
}

static void suspend(struct local_job *job)
{
	job->rec->suspended = true;
	signal_all(job, SIGSTOP);
	local_job_touch(job);
}

static void resume(struct local_job *job)
{
	job->rec->suspended = false;
	signal_all(job, SIGCONT);
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		local_replica_release(&job->reps[i]);
	local_job_touch(job);
}

/* What leaves its replica's group and is stopped gets SIGKILL when the replica has ended. */
static void restart(struct local_job *job)
{
	job->rec->suspended = false;
	local_job_restart(job, 0);
}

static void refuse(struct backend_request *rq, const struct spec_job *snap)
{
	const char *action = spec_action_name(rq->action);
	cleanup_free char *text = NULL;

	if (asprintf(&text, "%s: %s does nothing to a job whose phase is %s", rq->id, action,
		     snap->phase) < 0)
		text = NULL;
	backend_answer(rq, -EINVAL, NULL, text);
}

void local_control(struct backend *b, struct backend_request *rq)
{
	cleanup_job const struct spec_job *snap = find(b, BACKEND_JOBS, rq);
	struct local_job *job;
	enum spec_action action = rq->action;

	if (!snap)
		return;
	job = local_job_find(local_of(b), rq->id);
	/* What is decided but not published yet counts too. */
	if (!(snap->actions & 1u << action) || !job || job->over || job->goal != LOCAL_RUN ||
	    job->rec->suspended != snap->suspended) {
		refuse(rq, snap);
		return;
	}
	if (local_wait_add(job, LOCAL_WAIT_CONTROL, rq) < 0) {
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	if (action == SPEC_SUSPEND)
		suspend(job);
	else if (action == SPEC_RESUME)
		resume(job);
	else if (action == SPEC_RESTART)
		restart(job);
	else
		local_job_end(job, LOCAL_TERMINATE);
}

void local_forget(struct backend *b, struct backend_request *rq)
{
	struct local *l = local_of(b);
	cleanup_job const struct spec_job *snap = find(b, BACKEND_HISTORY, rq);
	struct local_job *job;

	if (!snap)
		return;
	job = local_job_find(l, rq->id);
	if (!job) {
		local_cold_add(l, LOCAL_COLD_FORGET, snap, rq);
		return;
	}
	if (local_wait_add(job, LOCAL_WAIT_FORGET, rq) < 0) {
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		local_replica_kill(&job->reps[i]);
}
