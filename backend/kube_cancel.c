/* SPDX-License-Identifier: MIT */
/*
 * Ending jobs: a DELETE whose precondition is the job's uid, so that it can be sent again after a lost
 * reply, and never ends another job of the name.
 */
#include <errno.h>

#include "backend/kube_request.h"
#include "spec/event.h"

#define DELETE_MS 25000

struct cancel {
	struct kube_op op;
	char *body;
	bool lost; /* a try may have been acted on, though no reply said so */
};

static void cancel_free(struct kube_op *op)
{
	struct cancel *c = container_of(op, struct cancel, op);

	free(c->body);
	free(c);
}

static void on_deleted(void *data, const struct http_reply *reply)
{
	struct cancel *c = data;
	struct kube *k = c->op.k;
	const struct backend_request *rq = c->op.rq;
	const struct spec_asked asked = {
		.verb = "delete",
		.resource = k->resource,
		.namespace = k->connection.namespace,
		.name = rq->id,
	};
	struct kube_job *job = kube_job_find(k, rq->uid);
	cleanup_free char *text = NULL;
	int err;

	c->op.call = NULL;
	err = !reply->err && reply->status / 100 == 2 ? 0 : kube_refusal(reply, &asked, &text);
	/* Somebody, perhaps a try of ours, was faster; then the name may be another job's already. */
	if (!err || err == -ENOENT || (err == -ESTALE && c->lost)) {
		if (job)
			kube_leave(job);
		kube_op_answer(&c->op, 0, NULL, NULL);
		return;
	}
	/* To delete twice is the same as once. */
	if (reply->err && reply->sent) {
		c->lost = true;
		if (kube_op_again(&c->op, reply->wait_ms))
			return;
	}
	kube_op_answer(&c->op, err, NULL, text);
}

static void send_delete(struct kube_op *op)
{
	struct cancel *c = container_of(op, struct cancel, op);
	const struct http_call call = {
		.method = HTTP_DELETE,
		.body = c->body,
		.len = strlen(c->body),
		.deadline_ms = DELETE_MS,
		.max_body = 8u << 20, /* the object may come back */
		.retry = true,
		.done = on_deleted,
		.data = c,
	};

	if (!kube_op_send(op, op->rq->id, &call))
		kube_op_answer(op, -ENOMEM, NULL, NULL);
}

void kube_cancel(struct backend *b, struct backend_request *rq)
{
	struct kube *k = kube_of(b);
	cleanup_free char *offline = kube_offline(k);
	struct cancel *c;

	/* rmdir blocks its directory: what is known to fail fails at once. */
	if (offline) {
		backend_answer(rq, -EHOSTUNREACH, NULL, offline);
		return;
	}
	c = calloc(1, sizeof(*c));
	if (c &&
	    asprintf(&c->body,
		     "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\","
		     "\"propagationPolicy\":\"Background\",\"preconditions\":{\"uid\":\"%s\"}}",
		     rq->uid) < 0)
		c->body = NULL;
	if (!c || !c->body) {
		free(c);
		backend_answer(rq, -ENOMEM, NULL, NULL);
		return;
	}
	c->op.rq = rq;
	c->op.send = send_delete;
	c->op.free = cancel_free;
	kube_op_add(k, &c->op);
	send_delete(&c->op);
}
