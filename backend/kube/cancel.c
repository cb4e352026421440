/* SPDX-License-Identifier: MIT */
/*
 * Ending jobs: a DELETE with the job's uid as precondition, so that it can be sent again after a lost reply, and never
 * ends another job of that name. It has succeeded if the reply is the job, being deleted, or a Status of success. The
 * page of a proxy is neither: a job that runs on must not be hidden.
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
 * How often a DELETE is sent again after replies that are not the server's own; unlimited while it can't be reached.
 */
#define SERVER_TRIES 4

struct cancel {
	struct request r;
	const struct kube_parts *k;
	char *name; /* name of the object */
	char *body;
	bool lost; /* the server may have acted on a request without a clear reply */
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
	/* The job is already gone, perhaps by an earlier request; another job may have its name now. */
	if (!err ||
	    (!unknown && (err == -ENOENT || (err == -ESTALE && (c->lost || reply->again))))) {
		publish_leave(k->publish, c->r.rq->uid);
		request_answer(&c->r, 0, NULL, NULL);
		return;
	}
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
 * Return why a DELETE of JOB would be useless, malloc'ed: its owner would create it again, as a TrainJob does with its
 * JobSet. NULL if it has no such owner. Readers paste the command into a shell, so it is only printed for valid names.
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
	/* A rmdir blocks its directory while it waits, so it fails immediately if it can't succeed now. */
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
