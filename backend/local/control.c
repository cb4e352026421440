/* SPDX-License-Identifier: MIT */
/* Each request waits until the published job shows its effect. */
#include "backend/local/control.h"

#include <errno.h>
#include <utlist.h>

#include "spec/base/mem.h"

#define CONTROL_WAIT_MS 5000

enum wait_kind { WAIT_SUBMIT, WAIT_CONTROL, WAIT_CANCEL, WAIT_FORGET };

struct local_wait {
	struct local_wait *prev, *next;
	struct control *control;
	struct local_job *job;
	struct backend_request *rq;
	enum wait_kind kind;
	uint64_t change;	 /* the change that the request made to the job's record, or 0 */
	struct loop_timer timer; /* CONTROL: the deadline of the answer */
};

struct control {
	struct backend *b;
	struct local_jobs *jobs;
	struct saved *saved;
	struct local_wait *waits;
};

struct control *control_new(struct backend *b, struct local_jobs *jobs, struct saved *saved)
{
	struct control *c = new0(struct control);

	c->b = b;
	c->jobs = jobs;
	c->saved = saved;
	return c;
}

void control_free(struct control *c)
{
	struct local_wait *w, *next;

	if (!c)
		return;
	DL_FOREACH_SAFE(c->waits, w, next) {
		loop_timer_stop(&w->timer);
		free(w);
	}
	free(c);
}

static void answer(struct local_wait *w, int err, const char *text)
{
	struct backend_request *rq = w->rq;
	const char *id = local_job_record(w->job)->job->id;

	DL_DELETE(w->control->waits, w);
	loop_timer_stop(&w->timer);
	free(w);
	backend_answer(rq, err, id, text);
}

/* Answer, unless the change is not on disk yet. */
static void on_late(void *data)
{
	struct local_wait *w = data;

	if (local_job_has_saved(w->job, w->change))
		answer(w, 0, NULL);
	else
		loop_timer_set(&w->timer, CONTROL_WAIT_MS);
}

static void wait_for(struct control *c, struct local_job *job, enum wait_kind kind,
		     struct backend_request *rq, uint64_t change)
{
	struct local_wait *w = new0(struct local_wait);

	w->control = c;
	w->job = job;
	w->rq = rq;
	w->kind = kind;
	w->change = change;
	loop_timer_init(&w->timer, c->b->loop, on_late, w);
	if (kind == WAIT_CONTROL)
		loop_timer_set(&w->timer, CONTROL_WAIT_MS);
	DL_APPEND(c->waits, w);
}

void control_await(struct control *c, struct local_job *job, struct backend_request *rq)
{
	wait_for(c, job, WAIT_SUBMIT, rq, 0);
}

static bool is_fulfilled(const struct local_wait *w, const struct spec_job *snap)
{
	bool final = spec_job_has_ended(snap);

	switch (w->kind) {
	case WAIT_SUBMIT:
		return true;
	case WAIT_CANCEL:
		return snap->history;
	case WAIT_FORGET:
		return false;
	case WAIT_CONTROL:
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

void control_published(struct control *c, struct local_job *job, const struct spec_job *snap)
{
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(c->waits, w, next)
		if (w->job == job && is_fulfilled(w, snap))
			answer(w, 0, NULL);
}

void control_unwritten(struct control *c, struct local_job *job, int err, uint64_t change)
{
	cleanup_free char *text = text_print(
		"its state can't be recorded: %s. The change is in effect, but a crash of kxfs undoes it",
		strerror(-err));
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(c->waits, w, next)
		if (w->job == job && w->change && w->change <= change)
			answer(w, err, text);
}

void control_leaving(struct control *c, struct local_job *job)
{
	struct local_wait *w, *next;

	DL_FOREACH_SAFE(c->waits, w, next) {
		if (w->job != job)
			continue;
		if (w->kind != WAIT_FORGET) {
			answer(w, 0, NULL);
			continue;
		}
		DL_DELETE(c->waits, w);
		saved_change(c->saved, SAVED_FORGET, local_job_record(job)->job->uid, w->rq);
		free(w);
	}
}

void control_cancel(struct control *c, struct backend_request *rq)
{
	struct local_job *job = local_jobs_find(c->jobs, rq->id);

	if (!job) {
		saved_change(c->saved, SAVED_CANCEL, rq->uid, rq);
		return;
	}
	wait_for(c, job, WAIT_CANCEL, rq, local_job_cancel(job));
}

/* True if the published job allows the action. If not, answer RQ. */
static bool allows(struct control *c, struct backend_request *rq)
{
	const struct spec_job *job cleanup_job = store_get_uid(c->b->store, rq->uid);

	if (job && job->actions & 1u << rq->action)
		return true;
	backend_answer_no_effect(rq, job ? job->phase : "gone");
	return false;
}

/* True if JOB, which may have changed since it was published, still allows ACTION. */
static bool still_allows(const struct local_job *job, enum spec_action action)
{
	if (local_job_is_ending(job))
		return false;
	if (action == SPEC_SUSPEND || action == SPEC_RESUME)
		return local_job_record(job)->job->suspended == (action == SPEC_RESUME);
	return true;
}

void control_action(struct control *c, struct backend_request *rq)
{
	struct local_job *job = local_jobs_find(c->jobs, rq->id);
	enum spec_action action = rq->action;
	uint64_t change;

	if (!allows(c, rq))
		return;
	if (!job || !still_allows(job, action)) {
		backend_answer(
			rq, -EINVAL, NULL,
			"the job's phase has just changed; read ctl for the actions that it accepts now");
		return;
	}
	if (action == SPEC_SUSPEND)
		change = local_job_suspend(job);
	else if (action == SPEC_RESUME)
		change = local_job_resume(job);
	else if (action == SPEC_RESTART)
		change = local_job_restart(job);
	else
		change = local_job_end(job, SPEC_GOAL_TERMINATE);
	wait_for(c, job, WAIT_CONTROL, rq, change);
}

void control_forget(struct control *c, struct backend_request *rq)
{
	struct local_job *job = local_jobs_find(c->jobs, rq->id);

	if (!job) {
		saved_change(c->saved, SAVED_FORGET, rq->uid, rq);
		return;
	}
	wait_for(c, job, WAIT_FORGET, rq, 0);
	local_job_kill(job);
}
