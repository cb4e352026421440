/* SPDX-License-Identifier: MIT */
/*
 * A request of a user that takes several to the server, with time between: what submitting, cancelling and ctl
 * share. Private to kube*.c; I/O thread.
 */
#ifndef KXFS_BACKEND_KUBE_REQUEST_H
#define KXFS_BACKEND_KUBE_REQUEST_H

#include "backend/kube.h"

struct spec_asked;

/* How long the outcome of a request whose reply was lost is looked for. */
#define KUBE_FIND_OUT_MS 600000

/* A request that talks to the server; part of what its file knows of it. */
struct kube_op {
	struct kube *k;
	struct backend_request *rq; /* NULL: answered */
	struct http_request *call;  /* under way */
	struct loop_timer *timer;   /* until the next try */
	uint64_t since;		    /* loop_now_ms */
	unsigned tries;
	bool working; /* a part of it is on the pool */
	bool unclear; /* a submission that may have been launched, as far as is known here */
	void (*send)(struct kube_op *op);
	void (*free)(struct kube_op *op);
	struct kube_op *prev, *next;
};

void kube_op_add(struct kube *k, struct kube_op *op);
/* Free it: it has been answered. */
void kube_op_end(struct kube_op *op);
/* Send CALL, whose path is set here, about the object of job ID; op->call is it. False: no memory. */
bool kube_op_send(struct kube_op *op, const char *id, const struct http_call *call);
/* Answer, and free it. */
void kube_op_answer(struct kube_op *op, int err, const char *id, const char *text);
void kube_op_answer_dry_run(struct kube_op *op, const char *manifest);
/* The errno of a reply that is no success, and its text for people (malloc'ed; NULL: no memory). */
int kube_refusal(const struct http_reply *reply, const struct spec_asked *asked, char **ret_text);
/* Call op->send again after a while, at least WAIT_MS. False: it has been tried long enough. */
bool kube_op_again(struct kube_op *op, unsigned wait_ms);
/* Answer all: the mount ends. */
void kube_ops_stop(struct kube *k);

#endif
