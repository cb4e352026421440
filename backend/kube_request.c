/* SPDX-License-Identifier: MIT */
/*
 * What all requests to the server share: those under way are known, so that the end of the mount
 * answers them, and a try that may have been lost is made again after a while.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/kube_request.h"
#include "spec/event.h"

#define RETRY_MIN_MS 500u
#define RETRY_MAX_MS 15000u

void kube_op_add(struct kube *k, struct kube_op *op)
{
	op->k = k;
	op->since = loop_now_ms();
	DL_APPEND(k->ops, op);
}

void kube_op_end(struct kube_op *op)
{
	struct kube *k = op->k;

	assert(!op->rq);
	if (op->call)
		http_cancel(op->call);
	loop_timer_free(op->timer);
	DL_DELETE(k->ops, op);
	op->free(op);
	kube_check_stopped(k);
}

bool kube_op_send(struct kube_op *op, const char *id, const struct http_call *call)
{
	struct http_call copy = *call;
	cleanup_free char *path = NULL;

	if (asprintf(&path, "%s/%s", op->k->jobs_path, id) < 0)
		path = NULL;
	copy.path = path;
	op->call = path ? http_send(op->k->http, &copy) : NULL;
	return op->call;
}

void kube_op_answer(struct kube_op *op, int err, const char *id, const char *text)
{
	backend_answer(take_ptr(op->rq), err, id, text);
	kube_op_end(op);
}

void kube_op_answer_dry_run(struct kube_op *op, const char *manifest)
{
	backend_answer_dry_run(take_ptr(op->rq), manifest);
	kube_op_end(op);
}

int kube_refusal(const struct http_reply *reply, const struct spec_asked *asked, char **ret_text)
{
	if (!reply->err)
		return spec_reply_errno(reply->status, reply->body, reply->len, asked, ret_text);
	if (asprintf(ret_text, "%s %s: %s", asked->verb, asked->resource,
		     *reply->text ? reply->text : strerror(-reply->err)) < 0)
		*ret_text = NULL;
	return reply->err;
}

static void op_retry(void *data)
{
	struct kube_op *op = data;

	loop_timer_free(take_ptr(op->timer));
	op->send(op);
}

bool kube_op_again(struct kube_op *op, unsigned wait_ms)
{
	unsigned delay = RETRY_MIN_MS << min_of(op->tries, 5u);

	if (loop_now_ms() - op->since > KUBE_FIND_OUT_MS)
		return false;
	op->tries++;
	delay = max_of(min_of(delay, RETRY_MAX_MS), wait_ms);
	op->timer = loop_timer_new(op->k->b->loop, delay, 0, op_retry, op);
	return op->timer;
}

void kube_ops_stop(struct kube *k)
{
	struct kube_op *op, *next;

	DL_FOREACH_SAFE(k->ops, op, next) {
		if (op->working)
			continue; /* on the pool: it sees that we stop when it comes back */
		if (op->unclear)
			kube_op_answer(op, -EINPROGRESS, NULL,
				       "kxfs is ending, and whether this was launched is not "
				       "known yet: the next mount says so here");
		else
			kube_op_answer(op, -ECANCELED, NULL, "kxfs is ending");
	}
}
