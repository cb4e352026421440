/* SPDX-License-Identifier: MIT */
/*
 * Requests: calls of any thread become work on the I/O thread. What every implementation requires is checked here
 * before the implementation gets a request. What was done is logged to .kxfs/log; each request and its
 * answer are messages of level debug.
 *
 *	state   | who has it                  | what ends it                        | next
 *	posted  | the loop                    | the loop runs it                    | refused: answered; running
 *	        |                             | its job is held, or may be (held.h) | answered; running
 *	running | the implementation          | backend_answer or one of its kind   | answered (freed)
 */
#include <errno.h>

#include "backend/base/diag.h"
#include "backend/impl/held.h"
#include "backend/impl/impl.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/record/head.h"

/* Return true if the job that RQ means still exists. Otherwise answer RQ. */
static bool request_check_job(struct backend_request *rq)
{
	bool history = rq->kind == BACKEND_FORGET;
	const struct spec_job *job cleanup_job =
		store_get(rq->b->store, history ? BACKEND_HISTORY : BACKEND_JOBS, rq->id);

	if (!job) {
		backend_refuse(rq, -ENOENT, "there is no job %s in %s/", rq->id,
			       history ? "history" : "jobs");
		return false;
	}
	/* A client that found the job while it was held knows it by the UUID of its submission. */
	if (!streq(job->uid, rq->uid) && job->own && streq(job->submission, rq->uid))
		text_set(&rq->uid, "%s", job->uid);
	if (!streq(job->uid, rq->uid)) {
		backend_refuse(rq, -ESTALE,
			       "%s is another job now; read its status before you retry", rq->id);
		return false;
	}
	return true;
}

static void request_pass(struct backend_request *rq)
{
	rq->b->ops->request[rq->kind](rq->b, rq);
}

static void request_run(void *data)
{
	struct backend_request *rq = data;
	bool is_new = rq->kind == BACKEND_SUBMIT || rq->kind == BACKEND_DRY_RUN;

	if (!rq->b->up)
		backend_refuse(rq, -ENOTCONN, "kxfs is ending");
	else if (rq->kind == BACKEND_SUBMIT && !rq->submission)
		backend_refuse(rq, -EIO, "%s: the kernel gives no random bytes", rq->file);
	else if ((is_new || request_check_job(rq)) && !held_takes(rq->b->held, rq))
		request_pass(rq);
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
	diag(DIAG_DEBUG, "%s %s", request_name(rq->kind), rq->file ? rq->file : rq->id);
	loop_post(rq->b->loop, request_run, rq);
}

static void request_of_file(struct backend_request *rq, const struct backend_submission *s)
{
	char uuid[JOB_FILES_UUID];

	rq->file = text_copy(s->file);
	rq->text = mem_copy(s->text, s->len);
	rq->len = s->len;
	rq->submitter = text_copy(s->submitter);
	if (rq->kind == BACKEND_SUBMIT &&
	    job_files_next_uuid(records_files(rq->b->records), uuid) == 0)
		rq->submission = text_copy(uuid);
	rq->readable = s->readable;
	rq->owned = s->owned;
	rq->owner = s->uid;
	rq->group = s->gid;
	rq->waits = s->waits;
	request_post(rq);
}

/* Implements make() of struct held_ops. */
static struct backend_request *request_of_held(struct backend *b, const struct spec_head *head,
					       enum backend_request_kind kind, bool again,
					       const char *text, size_t len, backend_reply_fn reply,
					       void *data)
{
	struct backend_request *rq = request_new(b, kind, reply, data);

	rq->held = true;
	rq->again = again;
	rq->id = text_copy(head->id);
	rq->file = text_copy(head->file);
	rq->submitter = text_copy(head->submitter);
	rq->submission = text_copy(head->key);
	rq->backend = kind == BACKEND_SUBMIT ? text_copy(head->backend) : NULL;
	rq->text = mem_copy(text, len);
	rq->len = len;
	rq->readable = (mode_t)head->readable;
	memcpy(rq->seed, head->seed, sizeof(rq->seed));
	return rq;
}

const struct held_ops backend_held_ops = {
	.run = request_run,
	.pass = request_pass,
	.make = request_of_held,
};

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

/* A caller that removes a job which other jobs may wait for. */
struct request_removal {
	struct backend *b;
	backend_reply_fn reply;
	void *data;
};

static void removal_end(void *data, int err)
{
	struct request_removal *m = data;
	const struct backend_result result = {
		.err = err,
		.text = err ? "the job is removed, but the disk did not record its result, which "
			      "other jobs wait for"
			    : "",
		.id = "",
		.manifest = "",
	};
	const backend_reply_fn reply = m->reply;
	void *arg = m->data;

	free(m);
	return reply(arg, &result);
}

static void on_removed(void *data, const struct backend_result *result)
{
	struct request_removal *m = data;

	if (!result->err)
		return held_when_saved(m->b->held, removal_end, m);
	m->reply(m->data, result);
	free(m);
}

/* Make a request of KIND that removes a job; its answer may wait. */
static struct backend_request *removal_new(struct backend *b, enum backend_request_kind kind,
					   backend_reply_fn reply, void *data)
{
	struct request_removal *m = new0(struct request_removal);

	*m = (struct request_removal){b, reply, data};
	return request_new(b, kind, on_removed, m);
}

void backend_cancel(struct backend *b, const char *id, const char *uid, backend_reply_fn reply,
		    void *data)
{
	request_of_job(removal_new(b, BACKEND_CANCEL, reply, data), id, uid);
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
	request_of_job(removal_new(b, BACKEND_FORGET, reply, data), id, uid);
}
