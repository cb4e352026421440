/* SPDX-License-Identifier: MIT */
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
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(job->waits, w, next) {
		if (w->kind != LOCAL_WAIT_FORGET) {
			wait_answer(w);
			continue;
		}
		DL_DELETE(job->waits, w);
		local_cold_add(job->l, LOCAL_COLD_FORGET, job->rec->uid, w->rq);
		free(w);
	}
}

void local_cancel(struct backend *b, struct backend_request *rq)
{
	struct local *l = local_of(b);
	struct local_job *job = local_job_find(l, rq->id);

	if (!job) {
		local_cold_add(l, LOCAL_COLD_CANCEL, rq->uid, rq);
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

/* The published job allows it? Else RQ is answered. */
static bool allows(struct backend *b, struct backend_request *rq)
{
	const struct spec_job *job cleanup_job = store_get_uid(b->store, rq->uid);

	if (job && job->actions & 1u << rq->action)
		return true;
	backend_answer_no_effect(rq, job ? job->phase : "gone");
	return false;
}

/* And what is decided and not published yet? */
static bool still_allows(const struct local_job *job, enum spec_action action)
{
	if (job->goal != LOCAL_RUN || job->over)
		return false;
	if (action == SPEC_SUSPEND || action == SPEC_RESUME)
		return job->rec->suspended == (action == SPEC_RESUME);
	return true;
}

void local_control(struct backend *b, struct backend_request *rq)
{
	struct local_job *job = local_job_find(local_of(b), rq->id);
	enum spec_action action = rq->action;

	if (!allows(b, rq))
		return;
	if (!job || !still_allows(job, action)) {
		backend_answer(rq, -EINVAL, NULL, "the job's phase has just changed; look again");
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
	struct local_job *job = local_job_find(l, rq->id);

	if (!job) {
		local_cold_add(l, LOCAL_COLD_FORGET, rq->uid, rq);
		return;
	}
	if (local_wait_add(job, LOCAL_WAIT_FORGET, rq) < 0) {
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		local_replica_kill(&job->reps[i]);
}
