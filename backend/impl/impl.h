/* SPDX-License-Identifier: MIT */
/*
 * What an implementation of the backend (local/, kube/) provides, and what it finds in struct backend. For
 * these two, backend.c and request.c only: what stands below them is given what it needs.
 */
#pragma once

#include <stdatomic.h>

#include "backend/backend.h"
#include "backend/impl/end.h"
#include "backend/impl/held.h"
#include "backend/jobs/store.h"
#include "backend/keep/keep.h"
#include "backend/output/output.h"
#include "backend/reader/reader.h"
#include "spec/view/kueue.h"

struct backend_request;

struct backend_ops {
	/* What the default state directory is named after: as backend_key. */
	int (*key)(const struct backend_config *config, char **ret, char **ret_text);
	/* Calls backend_set_impl(). Before the loop runs; no waiting. */
	int (*init)(struct backend *b, char **ret_text);
	/* On the I/O thread. Calls backend_started() once the first list is in, or with an error. */
	void (*start)(struct backend *b);
	/* On the I/O thread, after backend_started(): as backend_take_charge. NULL: there is nothing to begin. */
	void (*take_charge)(struct backend *b);
	bool start_asks; /* START waits for a server: it may be given up, as backend_give_up says */
	/* On the I/O thread. Calls backend_stopped() when nothing of it runs any more. */
	void (*stop)(struct backend *b);
	void (*fini)(struct backend *b);
	/*
	 * Requests, on the I/O thread: answer with backend_answer(), now or later, exactly once. The
	 * job of id and uid is in the store, in the right place. Whether it allows the action is for
	 * the implementation to see, which may know more than the snapshot does.
	 */
	void (*submit)(struct backend *b, struct backend_request *rq);
	void (*dry_run)(struct backend *b, struct backend_request *rq);
	void (*cancel)(struct backend *b, struct backend_request *rq);
	void (*control)(struct backend *b, struct backend_request *rq);
	void (*forget)(struct backend *b, struct backend_request *rq);
	/* Any thread. */
	int (*text)(struct backend *b, const struct spec_job *job, enum backend_text which,
		    char **ret, size_t *ret_len);
	/* As backend.h says. NULL: there is no such thing. */
	int (*events)(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		      int64_t *ret_changed);
	int64_t (*stale_since)(struct backend *b);
	/* I/O thread: is every job that there is in the store? NULL: always, once it has started. */
	bool (*is_whole)(struct backend *b);
	int (*queues)(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
	struct spec_queue_view *(*queue)(struct backend *b, const char *name);
	/* The text of a queue, of the N snapshots JOBS of jobs/; malloc'ed. NULL: its view has all. */
	void (*queue_text)(struct backend *b, const struct spec_job *const *jobs, size_t n,
			   char **ret, size_t *ret_len);
	/* The ClusterQueue NAME, a new reference; NULL: none is known. */
	struct spec_cluster_queue_view *(*cluster_queue)(struct backend *b, const char *name);
	/* As backend_wanted. NULL: nothing is told only when it is asked for. */
	void (*wanted)(struct backend *b, const struct spec_job *job);
	/* As backend_usage_wanted; NULL likewise. */
	void (*usage_wanted)(struct backend *b);
	void (*info)(struct backend *b, FILE *out);
	void (*metrics)(struct backend *b, FILE *out);
};

extern const struct backend_ops local_ops, kube_ops;

struct backend {
	const struct backend_ops *ops;
	struct backend_config config; /* strings owned */
	struct backend_events events;
	struct loop *loop;
	struct store *store;
	struct output *output;
	struct held *held;
	struct keep *keep;     /* of a capture with an archive; else NULL */
	struct reader *reader; /* of a mount with an archive; else NULL */
	void *impl;	       /* the implementation's own (backend_set_impl) */

	/* Only for backend.c and request.c: */
	struct end started, stopped;
	bool up;				       /* between start and stop; I/O thread */
	atomic_ullong answered[BACKEND_N_REQUESTS][2]; /* [1]: with an error */
};

/* A request under way. The strings are owned by it and stay until backend_answer. */
struct backend_request {
	struct backend *b;
	enum backend_request_kind kind;
	uint64_t since; /* ms */
	char *file;
	char *text;
	size_t len;
	char *submitter;
	char *submission; /* a UUID; of a dry run perhaps NULL */
	mode_t readable;  /* as backend_submission.readable */
	bool seeded;	  /* the job is to have the name that is made of SEED, or none */
	uint64_t seed[2];
	/*
	 * SUBMIT: launch a job that was held. Its file was answered for; in a store where uids are chosen here, its uid
	 * is SUBMISSION. An earlier try of that, before a crash, may have launched it. DRY_RUN: of what is to be held:
	 * what can't be launched here is refused.
	 */
	bool held;
	char *id;
	char *uid;
	enum spec_action action;
	char *argument; /* of the action; NULL: none */
	backend_reply_fn reply;
	void *data;
};

/* Reply and free RQ. TEXT may be NULL. */
void backend_answer(struct backend_request *rq, int err, const char *id, const char *text);
/* The same, with a text that printf would print. */
void backend_refuse(struct backend_request *rq, int err, const char *fmt, ...) printf_like(3, 4);
/* What a dry run has made: borrowed. */
struct backend_made {
	const char *id, *backend, *namespace, *manifest;
};
void backend_answer_dry_run(struct backend_request *rq, const struct backend_made *made);
/* The same for an action that a job in PHASE ignores: -EINVAL. */
void backend_answer_no_effect(struct backend_request *rq, const char *phase);

/* What held.c needs of requests. */
extern const struct held_ways backend_held_ways;

/* --- what an implementation says: BACKEND is a struct backend, so its parts can be told to call these --- */

static inline void backend_set_impl(struct backend *b, void *impl)
{
	b->impl = impl;
}

static inline void backend_ready(void *data)
{
	struct backend *b = data;

	end_reach(&b->started, 0, NULL);
}

/* The first list is in, or can't be had: TEXT says why. Heeded once, and not after the start was given up. */
static inline void backend_started(void *backend, int err, const char *text)
{
	struct backend *b = backend;

	if (err)
		end_reach(&b->started, err, text);
	else
		held_begin(b->held, backend_ready, b);
}

static inline void backend_all_stopped(void *data)
{
	struct backend *b = data;

	end_reach(&b->stopped, 0, NULL);
}

static inline void backend_output_stopped(void *data)
{
	struct backend *b = data;

	if (b->keep)
		keep_stop(b->keep, backend_all_stopped, b);
	else if (b->reader)
		reader_stop(b->reader, backend_all_stopped, b);
	else
		backend_all_stopped(b);
}

static inline void backend_held_stopped(void *data)
{
	struct backend *b = data;

	output_stop(b->output, backend_output_stopped, b);
}

/* Nothing of it runs any more. */
static inline void backend_stopped(void *backend)
{
	struct backend *b = backend;

	held_stop(b->held, backend_held_stopped, b);
}

/* As backend_events.launched. */
static inline void backend_launched(void *backend, const char *file, const char *id,
				    const char *submission)
{
	const struct backend *b = backend;

	if (b->events.launched)
		b->events.launched(b->events.data, file, id, submission);
}

/* "submit", ... */
const char *request_name(enum backend_request_kind kind);
