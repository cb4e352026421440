/* SPDX-License-Identifier: MIT */
/*
 * Requests: calls of any thread become work on the I/O thread. What holds for every implementation is checked here
 * before it sees a request, and what was done is reported to those who read .kxfs/log; each request and its answer
 * are messages of level debug.
 *
 *	state   | who has it                  | what ends it                        | next
 *	posted  | the loop                    | the loop runs it                    | refused: answered; running
 *	running | the implementation          | backend_answer or one of its kind   | answered (freed)
 */
#include <assert.h>
#include <errno.h>

#include "backend/base/diag.h"
#include "backend/impl/impl.h"
#include "spec/base/mem.h"

static const char *const request_names[BACKEND_N_REQUESTS] = {
	[BACKEND_SUBMIT] = "submit",   [BACKEND_DRY_RUN] = "dryrun", [BACKEND_CANCEL] = "cancel",
	[BACKEND_CONTROL] = "control", [BACKEND_FORGET] = "forget",
};

const char *request_name(enum backend_request_kind kind)
{
	return request_names[kind];
}

/* For those who read .kxfs/log: what was done. Of what was refused only the asker hears. */
static void request_log_done(const struct backend_request *rq, const char *id)
{
	switch (rq->kind) {
	case BACKEND_SUBMIT:
		diag(DIAG_INFO, "%s: launched from %s", id, rq->file);
		return;
	case BACKEND_DRY_RUN:
		return; /* nothing was done */
	case BACKEND_CANCEL:
		diag(DIAG_INFO, "%s: removed from jobs/", rq->id);
		return;
	case BACKEND_CONTROL:
		diag(DIAG_INFO, "%s: %s%s%s", rq->id, spec_action_name(rq->action),
		     rq->argument ? " " : "", rq->argument ? rq->argument : "");
		return;
	default:
		diag(DIAG_INFO, "%s: removed from history/", rq->id);
	}
}

/* What RQ is about: a file or a job. */
static const char *request_object(const struct backend_request *rq)
{
	return rq->file ? rq->file : rq->id ? rq->id : "";
}

static void request_settle(struct backend_request *rq, const struct backend_result *result)
{
	assert(loop_is_here(rq->b->loop));
	assert(result->err <= 0);
	lock_assert_none();
	atomic_fetch_add(&rq->b->answered[rq->kind][result->err < 0], 1);
	diag(DIAG_DEBUG, "%s %s: %s%s%s (%s) after %llu ms", request_name(rq->kind),
	     request_object(rq), result->err ? strerror(-result->err) : "done",
	     *result->id ? ", " : "", result->id, result->text,
	     (unsigned long long)(loop_now_ms() - rq->since));
	if (result->err == 0)
		request_log_done(rq, result->id);
	rq->reply(rq->data, result);
	free(rq->file);
	free(rq->text);
	free(rq->submitter);
	free(rq->submission);
	free(rq->id);
	free(rq->uid);
	free(rq->argument);
	free(rq);
}

void backend_answer(struct backend_request *rq, int err, const char *id, const char *text)
{
	const struct backend_result result = {
		.err = err,
		.text = text ? text : "",
		.id = id ? id : "",
		.manifest = "",
	};

	request_settle(rq, &result);
}

void backend_answer_dry_run(struct backend_request *rq, const char *manifest)
{
	const struct backend_result result = {.text = "", .id = "", .manifest = manifest};

	request_settle(rq, &result);
}

static void request_refuse(struct backend_request *rq, int err, const char *fmt, ...)
	printf_like(3, 4);

static void request_refuse(struct backend_request *rq, int err, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = text_vprint(fmt, ap);
	va_end(ap);
	backend_answer(rq, err, NULL, text);
}

void backend_answer_no_effect(struct backend_request *rq, const char *phase)
{
	request_refuse(rq, -EINVAL, "%s would have no effect: the job is %s; ctl lists what has",
		       spec_action_name(rq->action), phase);
}

/* Is the job that RQ means still there? Else RQ is answered. */
static bool request_check_job(struct backend_request *rq)
{
	bool history = rq->kind == BACKEND_FORGET;
	const struct spec_job *job cleanup_job =
		store_get(rq->b->store, history ? BACKEND_HISTORY : BACKEND_JOBS, rq->id);

	if (!job) {
		request_refuse(rq, -ENOENT, "there is no job %s in %s/", rq->id,
			       history ? "history" : "jobs");
		return false;
	}
	if (!streq(job->uid, rq->uid)) {
		request_refuse(rq, -ESTALE, "%s is another job by now; look at it again", rq->id);
		return false;
	}
	return true;
}

static void request_run(void *data)
{
	struct backend_request *rq = data;
	const struct backend_ops *ops = rq->b->ops;

	if (!rq->b->up) {
		request_refuse(rq, -ENOTCONN, "kxfs is ending");
		return;
	}
	if (rq->kind == BACKEND_SUBMIT) {
		ops->submit(rq->b, rq);
		return;
	}
	if (rq->kind == BACKEND_DRY_RUN) {
		ops->dry_run(rq->b, rq);
		return;
	}
	if (!request_check_job(rq))
		return;
	switch (rq->kind) {
	case BACKEND_CANCEL:
		ops->cancel(rq->b, rq);
		return;
	case BACKEND_CONTROL:
		ops->control(rq->b, rq);
		return;
	default:
		ops->forget(rq->b, rq);
	}
}

static struct backend_request *request_new(struct backend *b, enum backend_request_kind kind,
					   backend_reply_fn reply, void *data)
{
	struct backend_request *rq = new0(struct backend_request);

	rq->b = b;
	rq->kind = kind;
	rq->since = loop_now_ms();
	rq->reply = reply;
	rq->data = data;
	return rq;
}

static void request_post(struct backend_request *rq)
{
	lock_assert_none();
	diag(DIAG_DEBUG, "%s %s", request_name(rq->kind), request_object(rq));
	loop_post(rq->b->loop, request_run, rq);
}

static void request_of_file(struct backend_request *rq, const struct backend_submission *s)
{
	rq->file = text_copy(s->file);
	rq->text = mem_copy(s->text, s->len);
	rq->len = s->len;
	rq->submitter = text_copy(s->submitter);
	rq->submission = s->submission ? text_copy(s->submission) : NULL;
	rq->readable = s->readable;
	request_post(rq);
}

void backend_submit(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		    void *data)
{
	request_of_file(request_new(b, BACKEND_SUBMIT, reply, data), s);
}

void backend_dry_run(struct backend *b, const struct backend_submission *s, backend_reply_fn reply,
		     void *data)
{
	request_of_file(request_new(b, BACKEND_DRY_RUN, reply, data), s);
}

static void request_of_job(struct backend_request *rq, const char *id, const char *uid)
{
	rq->id = text_copy(id);
	rq->uid = text_copy(uid);
	request_post(rq);
}

void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data)
{
	request_of_job(request_new(b, BACKEND_CANCEL, reply, data), id, uid);
}

void backend_control(struct backend *b, const char *id, const char *uid, enum spec_action action,
		     const char *argument, backend_reply_fn reply, void *data)
{
	struct backend_request *rq = request_new(b, BACKEND_CONTROL, reply, data);

	rq->action = action;
	rq->argument = argument ? text_copy(argument) : NULL;
	request_of_job(rq, id, uid);
}

void backend_forget(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data)
{
	request_of_job(request_new(b, BACKEND_FORGET, reply, data), id, uid);
}
