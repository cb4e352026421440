/* SPDX-License-Identifier: MIT */
/*
 * Makes and answers requests.
 *
 *	state   | owner                 | what ends it                    | next
 *	posted  | the loop, then held.c | held.c answers it               | answered (freed)
 *	        |                       | held.c passes it on             | running
 *	running | the implementation    | backend_answer or backend_reply | answered (freed)
 *	        |                       | a removal's answer must wait    | delayed
 *	delayed | struct removal_waits  | UNSAVED is 0                    | answered (freed)
 *	        |                       | timeout (SAVE_MS)               | answered (freed)
 *	        |                       | the mount ends                  | answered (freed)
 */
#include <assert.h>
#include <errno.h>

#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/impl/held.h"
#include "backend/impl/impl.h"
#include "spec/base/mem.h"
#include "spec/record/head.h"

#define SAVE_MS 3000 /* the longest delay of the answer to a removal */

/* --- answers --- */

static const char *const request_names[BACKEND_N_REQUESTS] = {
	[BACKEND_SUBMIT] = "submit",   [BACKEND_DRY_RUN] = "dryrun", [BACKEND_CANCEL] = "cancel",
	[BACKEND_CONTROL] = "control", [BACKEND_FORGET] = "forget",
};

const char *request_name(enum backend_request_kind kind)
{
	return request_names[kind];
}

static void request_log_done(const struct backend_request *rq, const char *id)
{
	const struct spec_job *job cleanup_job = NULL;

	switch (rq->kind) {
	case BACKEND_SUBMIT:
		job = store_get(rq->b->store, BACKEND_JOBS, id);
		/* A held job is PENDING until kxfs requests its launch. */
		diag(DIAG_INFO, "%s: %s from %s", id,
		     job && job->held && job->state == SPEC_PENDING ? "held" : "launched",
		     rq->file);
		return;
	case BACKEND_DRY_RUN:
		return;
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

static void answer_removal(struct backend_request *rq, int err)
{
	LL_DELETE(rq->b->removals.list, rq);
	loop_timer_stop(&rq->late);
	return backend_answer(
		rq, err, NULL,
		err ? "kxfs removed the job, but could not write the job's result to disk. Other "
		      "jobs wait for this result, and a restart of kxfs may lose it"
		    : NULL);
}

static void on_late(void *data)
{
	answer_removal(data, -ETIMEDOUT);
}

/* If the answer to the removal RQ must wait, add RQ to the list of removals and return true. */
static bool delays(struct backend_request *rq)
{
	if (!rq->b->removals.unsaved || !rq->b->up)
		return false;
	loop_timer_init(&rq->late, rq->b->loop, on_late, rq);
	loop_timer_set(&rq->late, SAVE_MS);
	LL_APPEND(rq->b->removals.list, rq);
	return true;
}

void backend_answer_removals(struct backend *b)
{
	const struct removal_waits *waits = &b->removals;

	while (waits->list && (!waits->unsaved || !b->up))
		answer_removal(waits->list, 0);
}

void backend_reply(struct backend_request *rq, const struct backend_result *result)
{
	const char *about = rq->file ? rq->file : rq->id ? rq->id : "";
	const bool removes = rq->kind == BACKEND_CANCEL || rq->kind == BACKEND_FORGET;

	assert(loop_is_here(rq->b->loop));
	assert(result->err <= 0);
	lock_assert_none();
	if (removes && result->err == 0 && delays(rq))
		return;
	atomic_fetch_add(&rq->b->answered[rq->kind][result->err < 0], 1);
	diag(DIAG_DEBUG, "%s %s: %s%s%s (%s) after %llu ms", request_name(rq->kind), about,
	     result->err ? strerror(-result->err) : "done", *result->id ? ", " : "", result->id,
	     result->text, (unsigned long long)(loop_now_ms() - rq->since));
	if (result->err == 0)
		request_log_done(rq, result->id);
	rq->reply(rq->data, result);
	free(rq->file);
	free(rq->text);
	free(rq->submitter);
	free(rq->submission);
	free(rq->backend);
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

	backend_reply(rq, &result);
}

void backend_refuse(struct backend_request *rq, int err, const char *fmt, ...)
{
	cleanup_free char *text = text_of_args(fmt);

	backend_answer(rq, err, NULL, text);
}

void backend_answer_no_effect(struct backend_request *rq, const char *phase)
{
	backend_refuse(rq, -EINVAL,
		       "%s has no effect while the job is %s; read the file ctl for the actions "
		       "that are possible now",
		       spec_action_name(rq->action), phase);
}

struct spec_head *backend_head(const struct backend_request *rq)
{
	struct spec_head *h = spec_head_new();

	h->own = true;
	h->created = loop_time_ns();
	h->more->readable = rq->readable;
	h->owned = rq->owned;
	h->user = rq->owner;
	h->group = rq->group;
	spec_set(&h->key, rq->submission ? rq->submission : "");
	spec_set(&h->file, rq->file);
	spec_set(&h->more->submitter, rq->submitter);
	return h;
}

/* --- new requests --- */

void backend_pass(struct backend_request *rq)
{
	rq->b->ops->request[rq->kind](rq->b, rq);
}

struct backend_request *backend_request_new(struct backend *b, enum backend_request_kind kind,
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

void backend_pass_held(struct backend *b, const struct spec_head *head,
		       enum backend_request_kind kind, bool again, const char *text, size_t len,
		       backend_reply_fn reply, void *data)
{
	struct backend_request *rq = backend_request_new(b, kind, reply, data);

	rq->held = true;
	rq->again = again;
	rq->id = text_copy(head->id);
	rq->file = text_copy(head->file);
	rq->submitter = text_copy(head->more->submitter);
	rq->submission = text_copy(head->key);
	rq->backend = kind == BACKEND_SUBMIT ? text_copy(head->backend) : NULL;
	rq->text = mem_copy(text, len);
	rq->len = len;
	rq->readable = (mode_t)head->more->readable;
	memcpy(rq->seed, head->more->seed, sizeof(rq->seed));
	backend_pass(rq);
}
