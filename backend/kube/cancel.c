/* SPDX-License-Identifier: MIT */
/*
 * Ending jobs: a DELETE whose precondition is the job's uid, so that it can be sent again after a lost reply, and never
 * ends another job of the name. A reply counts as success if it is the job as it is being deleted, or a Status that
 * says so: the page of a proxy does not, since a job that runs on must not be hidden.
 */
#include <errno.h>

#include "backend/kube/parts.h"
#include "spec/api/object.h"
#include "spec/api/refusal.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/view/reader.h"

#define DELETE_MS 25000
#define REPLY_MAX (8u << 20) /* the reply may be the whole object */
/*
 * How often a DELETE is sent again when the reply is not the server's own; while the server can't be reached, tries are
 * not counted.
 */
#define SERVER_TRIES 4

struct cancel {
	struct request r;
	const struct kube_parts *k;
	char *name; /* name of the object */
	char *body;
	bool lost; /* a try may have been acted on, though no reply said so */
};

static void cancel_free(struct request *r)
{
	struct cancel *c = container_of(r, struct cancel, r);

	free(c->name);
	free(c->body);
	free(c);
}

static bool is_accepted(const struct cancel *c, const struct http_reply *reply)
{
	const struct spec_object_wanted wanted = {.uid = c->r.rq->uid};

	return http_succeeded(reply) && (spec_object_is_success(reply->body, reply->len) ||
					 spec_object_is(reply->body, reply->len, &wanted));
}

static void on_deleted(void *data, const struct http_reply *reply)
{
	struct cancel *c = data;
	const struct kube_parts *k = c->k;
	const struct spec_asked asked = request_asked(&c->r, "delete", c->name);
	bool accepted = is_accepted(c, reply), unknown = !accepted && http_is_unknown(reply);
	cleanup_free char *text = NULL;
	int err = accepted ? 0 : http_refusal(reply, &asked, &text);

	request_replied(&c->r);
	/* The job is gone already, perhaps by an earlier try; another job may have its name by now. */
	if (!err ||
	    (!unknown && (err == -ENOENT || (err == -ESTALE && (c->lost || reply->again))))) {
		publish_leave(k->publish, c->r.rq->uid);
		request_answer(&c->r, 0, NULL, NULL);
		return;
	}
	/* A DELETE may be sent again: the second one changes nothing. */
	c->lost |= unknown;
	if (unknown && (reply->err || c->r.backoff.failures < SERVER_TRIES) &&
	    request_again(&c->r, reply->wait_ms))
		return;
	request_answer(&c->r, err, NULL, text);
}

static void send_delete(struct request *r)
{
	struct cancel *c = container_of(r, struct cancel, r);
	const struct http_call call = {
		.method = HTTP_DELETE,
		.body = c->body,
		.len = strlen(c->body),
		.deadline_ms = DELETE_MS,
		.max_body = REPLY_MAX,
		.retry = true,
		.done = on_deleted,
		.data = c,
	};

	request_call(r, c->name, "", &call);
}

static const struct request_ops cancel_ops = {.send = send_delete, .free = cancel_free};

/*
 * The text that says why a DELETE of JOB would change nothing, malloc'ed: its owner would make it anew, as a TrainJob
 * does its JobSet. NULL: it has no such owner. Readers paste the command in it into a shell, so it is given only for
 * names that an object can have.
 */
static char *find_owner(const struct kube_parts *k, const struct world_job *job)
{
	static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	const char *owner = job->view->meta.owner;
	size_t kind = strspn(owner, letters);

	if (!*owner || !job->view->owned || !job->kind->reader->remade)
		return NULL;
	if (kind == 0 || owner[kind] != ' ' || !spec_name_is_object(owner + kind + 1))
		return text_print("its owner, %s, would create it again; end the owner", owner);
	return text_print(
		"its owner, %s, would create it again; to end both: kubectl -n %s delete %s", owner,
		k->namespace, owner);
}

void kube_cancel(struct backend *b, struct backend_request *rq)
{
	const struct kube_parts *k = kube_parts_of(b);
	cleanup_free char *offline = watches_offline(k->watches);
	const struct world_job *job = world_find(k->world, rq->uid);
	cleanup_free char *owner = job && job->view ? find_owner(k, job) : NULL;
	struct cancel *c;

	if (!job || !job->view) {
		backend_answer(rq, -ENOENT, NULL, "the job is gone, or its kind can't be seen now");
		return;
	}
	if (owner) {
		backend_answer(rq, -EPERM, NULL, owner);
		return;
	}
	/* A rmdir blocks its directory while it waits, so one that can't succeed now fails at once. */
	if (offline) {
		backend_answer(rq, -EHOSTUNREACH, NULL, offline);
		return;
	}
	c = new0(struct cancel);
	c->k = k;
	c->name = text_copy(job->view->meta.name);
	c->body = text_print("{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
			     "\"propagationPolicy\":\"Background\","
			     "\"preconditions\":{\"uid\":\"%s\"}}",
			     rq->uid);
	request_begin(k->requests, &c->r, rq, &cancel_ops);
	request_set_kind(&c->r, job->kind);
	send_delete(&c->r);
}
