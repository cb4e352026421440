/* SPDX-License-Identifier: MIT */
/* The objects of a mount of a cluster. Only kube.c creates them and writes struct kube_parts. */
#pragma once

#include "backend/base/random.h"
#include "backend/base/work.h"
#include "backend/client/http.h"
#include "backend/impl/impl.h"
#include "backend/kube/publish.h"
#include "backend/kube/watches.h"
#include "spec/api/kubeconfig.h"
#include "spec/api/refusal.h"
#include "spec/pods/kind.h"

struct kueue;
struct samples;
struct requests;
struct removals;

struct kube_parts {
	struct backend *b;
	const char *namespace;
	const char *user; /* the value of SPEC_LABEL_USER on the objects of this user */
	struct world *world;
	struct folders *folders;
	struct capture *capture;
	struct commands *commands;
	struct publish *publish;
	struct watches *watches;
	struct kueue *kueue;
	struct samples *samples;
	struct requests *requests;
	struct removals *removals;
};

static inline const struct kube_parts *kube_parts_of(const struct backend *b)
{
	return b->impl;
}

/* Read the kubeconfig that CONFIG names. Return 0, or a negative errno with *RET_TEXT. */
int kube_connection(const struct backend_config *config, struct spec_connection *ret,
		    char **ret_text);
/* Return the queue of the mount's own jobs (-o queue=), or "". */
const char *kube_own_queue(const struct backend_config *config);

/* See backend_ops. */
void kube_submit(struct backend *b, struct backend_request *rq); /* also for dry runs */
void kube_cancel(struct backend *b, struct backend_request *rq);
void kube_control(struct backend *b, struct backend_request *rq);
void kube_forget(struct backend *b, struct backend_request *rq);

/* --- removal.c --- */

/* Create the object that removes old jobs. FOLDERS then notifies it of each saved snapshot. */
struct removals *removals_new(struct backend *b, struct folders *folders, struct capture *capture,
			      struct publish *publish);
/* Check soon whether age or size requires removals. Call this when all jobs are known. */
void removals_soon(void *removals);
/* See backend_ops. */
bool kube_is_settled(struct backend *b, const struct spec_job *job);
/* From now on, don't remove jobs because of their age or size. Users can still remove jobs. */
void removals_stop(struct removals *r);
void removals_free(struct removals *r); /* NULL is allowed */

/* --- requests.c: the common part of all requests --- */

struct request;

/* How long kxfs tries to find out the outcome of a call whose reply was lost. */
#define REQUEST_FIND_OUT_MS 600000

struct request_ops {
	void (*send)(struct request *r); /* send the next call */
	void (*free)(struct request *r);
};

/*
 * The common part of users' requests in progress. submit.c, control.c and removal.c embed it in
 * their own structs, set to zero. Plain data: these files set WORKING and UNCLEAR, and clear CALL
 * in done().
 */
struct request {
	const struct request_ops *ops;
	struct backend_request *rq; /* NULL after the answer */
	const struct spec_kind *kind;
	char *resource; /* for example "jobs.batch.volcano.sh" */
	bool working;	/* true while the pool uses the request: don't answer it meanwhile */
	bool unclear;	/* true if a submission may have launched its job */
	struct requests *all;
	struct http_request *call; /* NULL if no call is in progress */
	struct loop_timer timer;   /* runs until the next call */
	uint64_t since;		   /* loop_now_ms() when the request began */
	struct backoff backoff;
	struct request *prev, *next;
};

/* HTTP, GROUP and NAMESPACE are borrowed. A request leaves GROUP when it is answered. */
struct requests *requests_new(struct loop *loop, struct http *http, struct group *group,
			      const char *namespace);
/* Answer all requests except WORKING ones. submit.c answers these when the pool has finished. */
void requests_stop(struct requests *all);
void requests_free(struct requests *all); /* NULL is allowed */

/* Begin R, which handles RQ. Later, call request_answer or request_reply. */
void request_begin(struct requests *all, struct request *r, struct backend_request *rq,
		   const struct request_ops *ops);
/* Set the kind of the jobs that R is about. Call this before the first request_call. */
void request_set_kind(struct request *r, const struct spec_kind *kind);
/* Return the time since R began, in ms. */
uint64_t request_age(const struct request *r);
/* Describe the call VERB ("get", ...) for job NAME, for http_refusal. The strings are borrowed. */
struct spec_asked request_asked(const struct request *r, const char *verb, const char *name);
/*
 * Send CALL for the object NAME, or for the collection of jobs if NAME is NULL. QUERY is "?..." or
 * "". If CALL has a path, ignore NAME and QUERY. CALL's done() must first clear R->call.
 */
void request_call(struct request *r, const char *name, const char *query,
		  const struct http_call *call);
/*
 * Call send() after a pause of at least WAIT_MS, and return true. Return false if R began more than
 * REQUEST_FIND_OUT_MS ago.
 */
bool request_again(struct request *r, unsigned wait_ms);
/* Answer R->rq with backend_answer or backend_reply, and free R. */
void request_answer(struct request *r, int err, const char *id, const char *text);
void request_reply(struct request *r, const struct backend_result *result);
