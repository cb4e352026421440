/* SPDX-License-Identifier: MIT */
/*
 * A submission: the manifest is made and what is to be kept of it is written on the pool; then it is
 * sent, under a name and with a UUID that were chosen before. So it is launched exactly once: a try
 * whose reply was lost is made again under the same name, and a name that is taken is ours when the
 * object has our UUID. Once a try may have been acted on, no refusal is final before the server was asked
 * who has the name: our own job may be what uses up the quota. The job is in the store before the
 * request is answered. A dry run takes the same way, but keeps nothing, and asks the server for no more
 * than its opinion.
 */
#include "backend/kube_submit.h"

#include <errno.h>

#include "spec/event.h"
#include "spec/object.h"

#define POST_MS	     25000
#define REPLY_MAX    (8u << 20)
#define SERVER_TRIES 4 /* after which an internal error of the server is the answer */

static struct kube_submit *submit_of(struct kube_op *op)
{
	return container_of(op, struct kube_submit, op);
}

static void submit_free(struct kube_op *op)
{
	struct kube_submit *s = submit_of(op);

	spec_manifest_free(s->m);
	free(s->text);
	free(s);
}

static void worked(void *data);

/* --- the end --- */

static void removed(void *data)
{
	struct kube_submit *s = data;

	s->op.working = false;
	kube_op_answer(&s->op, s->err, NULL, s->text);
}

/* Nothing was launched: nothing is kept. */
static void refuse(struct kube_submit *s, int err)
{
	s->err = err;
	if (!s->kept) {
		removed(s);
		return;
	}
	s->op.working = true;
	kube_folder_remove(s->op.k, s->m->id, removed, s);
}

static void rendered(void *data)
{
	struct kube_submit *s = data;

	s->op.working = false;
	if (s->err)
		kube_op_answer(&s->op, s->err, NULL, NULL);
	else
		kube_op_answer_dry_run(&s->op, s->text);
}

static void render(void *data)
{
	struct kube_submit *s = data;
	size_t len;

	s->err = spec_manifest_yaml(s->m, &s->text, &len);
}

/* The server would take it. A large manifest takes a while to write down: on the pool. */
static void approved(struct kube_submit *s)
{
	s->op.working = true;
	loop_work(s->op.k->b->loop, render, rendered, s);
}

static void launched(struct kube_submit *s, const char *object, size_t len)
{
	struct kube *k = s->op.k;
	struct kube_job *job = len ? kube_job_told(k, object, len) : NULL;

	if (job)
		kube_own_launched(k, s->m->id, job->uid);
	/* The watch tells of it otherwise. */
	if (job && kube_publish(job) < 0)
		diag(DIAG_ERROR, "%s: launched, and shown when there is memory again", s->m->id);
	kube_op_answer(&s->op, 0, s->m->id, NULL);
}

/* Whether it was launched can't be found out: the directory stays, should it appear. */
static void give_up(struct kube_submit *s, int err, const char *why)
{
	cleanup_free char *text = NULL;

	if (asprintf(&text,
		     "%s: sent as %s, but whether it was launched could not be found out: %s\n"
		     "Look for jobs/%s before it is submitted again.\n",
		     s->op.rq->file, s->m->id, why, s->m->id) < 0)
		text = NULL;
	kube_op_answer(&s->op, err, NULL, text);
}

/* --- talking --- */

/* Has the watch told of it, though no reply did? */
static bool is_known(struct kube_submit *s)
{
	for (int place = BACKEND_JOBS; place <= BACKEND_HISTORY; place++) {
		const struct spec_job *job cleanup_job =
			store_get(s->op.k->b->store, (enum backend_place)place, s->m->id);

		if (job && streq(job->submission, s->submission))
			return true;
	}
	return false;
}

/* WHY: what came instead of an answer that says whether it was launched. */
static void again(struct kube_submit *s, const struct http_reply *reply, const char *why)
{
	if (!kube_op_again(&s->op, reply->wait_ms))
		give_up(s, -ETIMEDOUT, why);
}

static struct spec_asked asked_of(const struct kube_submit *s, const char *verb)
{
	return (struct spec_asked){
		.verb = verb,
		.resource = s->op.k->resource,
		.namespace = s->op.k->connection.namespace,
		.name = s->m->id,
		.sent = s->m->json_len,
	};
}

static void forgotten(void *data)
{
	struct kube_submit *s = data;

	s->kept = false;
	loop_work(s->op.k->b->loop, kube_submit_prepare, worked, s);
}

/* Somebody has the name that the document gives: the same under another one. */
static void take_another_name(struct kube_submit *s)
{
	s->names++;
	s->beside = true;
	s->op.working = true;
	if (s->kept)
		kube_folder_remove(s->op.k, s->m->id, forgotten, s);
	else
		forgotten(s);
}

/* Who has the name, as a GET of it says. */
enum holder { HOLDER_OURS, HOLDER_OTHER, HOLDER_NONE, HOLDER_UNCLEAR };

static enum holder holder_of(const struct kube_submit *s, const struct http_reply *reply)
{
	if (reply->err)
		return HOLDER_UNCLEAR;
	if (reply->status == 404)
		return HOLDER_NONE;
	if (reply->status != 200)
		return HOLDER_UNCLEAR;
	if (spec_object_is_submission(reply->body, reply->len, s->submission))
		return HOLDER_OURS;
	/* Sent without annotations (no_annotations), ours looks like any other. */
	return spec_object_is_submission(s->m->json, s->m->json_len, s->submission)
		       ? HOLDER_OTHER
		       : HOLDER_UNCLEAR;
}

/* A try was refused after one whose outcome is not known. */
static void refused_late(struct kube_submit *s, enum holder holder)
{
	cleanup_free char *why = take_ptr(s->text);

	if (holder == HOLDER_UNCLEAR) {
		give_up(s, s->err, why ? why : strerror(-s->err));
		return;
	}
	s->text = take_ptr(why);
	refuse(s, s->err);
}

/* The name is taken. */
static void taken(struct kube_submit *s, enum holder holder, const struct http_reply *reply)
{
	if (holder == HOLDER_NONE && !s->lost) {
		again(s, reply, "its name is taken and free in turns");
	} else if (!s->m->named && holder != HOLDER_OTHER) {
		/* Nobody else has chosen this name; its object may be gone by now, or not ours to read. */
		launched(s, "", 0);
	} else if (holder != HOLDER_OTHER && s->lost) {
		give_up(s, -EEXIST, "a job of that name is there or was, and may be another");
	} else if (s->m->named && s->names < KUBE_NAME_TRIES) {
		take_another_name(s);
	} else {
		if (asprintf(&s->text, "%s: a job named %s exists already; nothing was launched\n",
			     s->op.rq->file, s->m->id) < 0)
			s->text = NULL;
		refuse(s, -EEXIST);
	}
}

static void on_holder(void *data, const struct http_reply *reply)
{
	struct kube_submit *s = data;
	enum holder holder = holder_of(s, reply);

	s->op.call = NULL;
	if (holder == HOLDER_OURS)
		launched(s, reply->body, reply->len);
	else if (reply->err || reply->status >= 500 || reply->status == 429)
		again(s, reply,
		      *reply->text ? reply->text : "the server does not say who has the name");
	else if (s->err)
		refused_late(s, holder);
	else
		taken(s, holder, reply);
}

static void ask_holder(struct kube_submit *s)
{
	const struct http_call call = {
		.method = HTTP_GET,
		.deadline_ms = POST_MS,
		.max_body = REPLY_MAX,
		.retry = true,
		.done = on_holder,
		.data = s,
	};

	if (!kube_op_send(&s->op, s->m->id, &call))
		refuse(s, -ENOMEM);
}

/* May the server have acted on a try that it did not answer with success? */
static bool is_unknown(const struct http_reply *reply, int err)
{
	if (reply->err)
		return reply->sent;
	return reply->status >= 500 && reply->status != 503 && err != -EFBIG;
}

/* The server, or the way to it, did not answer with success. */
static void not_posted(struct kube_submit *s, const struct http_reply *reply)
{
	const struct spec_asked asked = asked_of(s, "create");
	cleanup_free char *text = NULL;
	bool unknown;

	s->err = kube_refusal(reply, &asked, &text);
	if (s->err == -EEXIST) {
		s->err = 0;
		ask_holder(s);
		return;
	}
	unknown = !kube_submit_is_dry(s) && is_unknown(reply, s->err);
	s->lost |= unknown;
	s->op.unclear = s->lost;
	/* A server that fails is asked a few times; one that can't be reached, until it can. */
	if (s->lost &&
	    (reply->err || s->err == -EAGAIN || (unknown && s->op.tries < SERVER_TRIES))) {
		diag(DIAG_WARNING, "%s: trying again, since it may have been launched: %s",
		     s->m->id, text ? text : "");
		again(s, reply, text ? text : strerror(-s->err));
		return;
	}
	if (asprintf(&s->text, "%s: %s\n", s->op.rq->file, text ? text : strerror(-s->err)) < 0)
		s->text = NULL;
	if (s->lost)
		ask_holder(s);
	else
		refuse(s, s->err);
}

static void on_posted(void *data, const struct http_reply *reply)
{
	struct kube_submit *s = data;

	s->op.call = NULL;
	s->op.unclear = s->lost;
	s->err = 0;
	free(take_ptr(s->text));
	if (!reply->err && reply->status / 100 == 2) {
		if (kube_submit_is_dry(s))
			approved(s);
		else
			launched(s, reply->body, reply->len);
	} else {
		not_posted(s, reply);
	}
}

static void post(struct kube_op *op)
{
	struct kube_submit *s = submit_of(op);
	struct kube *k = op->k;
	cleanup_free char *path = NULL;
	struct http_call call = {
		.method = HTTP_POST,
		.body = s->m->json,
		.len = s->m->json_len,
		.deadline_ms = POST_MS,
		.max_body = REPLY_MAX,
		.retry = true,
		.done = on_posted,
		.data = s,
	};

	if (s->lost && is_known(s)) {
		launched(s, "", 0);
		return;
	}
	if (asprintf(&path, "%s?fieldManager=kxfs&fieldValidation=Strict%s", k->jobs_path,
		     kube_submit_is_dry(s) ? "&dryRun=All" : "") < 0)
		path = NULL;
	call.path = path;
	op->call = path ? http_send(k->http, &call) : NULL;
	op->unclear = op->call && !kube_submit_is_dry(s);
	if (!op->call)
		refuse(s, -ENOMEM);
}

static void worked(void *data)
{
	struct kube_submit *s = data;
	struct kube *k = s->op.k;

	s->op.working = false;
	if (!s->err && k->stopping) {
		s->err = -ECANCELED;
		s->text = strdup("kxfs is ending; nothing was launched\n");
	}
	if (!s->err && !kube_submit_is_dry(s))
		s->err = kube_own_add(k, s->m->id, s->submission, "") ? 0 : -ENOMEM;
	if (s->err)
		refuse(s, s->err);
	else
		post(&s->op);
}

void kube_submit(struct backend *b, struct backend_request *rq)
{
	struct kube *k = kube_of(b);
	struct kube_submit *s = calloc(1, sizeof(*s));

	if (!s) {
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	s->op.rq = rq;
	s->op.send = post;
	s->op.free = submit_free;
	s->op.working = true;
	kube_op_add(k, &s->op);
	loop_work(b->loop, kube_submit_prepare, worked, s);
}
