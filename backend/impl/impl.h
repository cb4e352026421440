/* SPDX-License-Identifier: MIT */
/*
 * The interface between the backend and its implementations, local/ and kube/. struct backend_ops
 * has the functions that an implementation provides, and struct backend has the data that the
 * implementation may use. Only local/, kube/, backend.c and the files of this folder include this
 * header. Other files of the backend get what they need as arguments.
 */
#pragma once

#include <stdatomic.h>

#include "backend/archive/archive.h"
#include "backend/backend.h"
#include "backend/base/thread.h"
#include "backend/impl/held.h"
#include "backend/jobs/records.h"
#include "backend/jobs/store.h"
#include "backend/output/output.h"
#include "spec/view/kueue.h"

struct backend_request;

struct backend_ops {
	/* See backend_key. Return the name of the default state directory. */
	int (*key)(const struct backend_config *config, char **ret, char **ret_text);
	/* Called before the loop runs. Must call backend_set_impl(), and must not wait. */
	int (*init)(struct backend *b, char **ret_text);
	/* On the I/O thread. Must call backend_started() with the result of the first list. */
	void (*start)(struct backend *b);
	/* See backend_take_charge. On the I/O thread, after backend_started(). May be NULL. */
	void (*take_charge)(struct backend *b);
	/* true if START waits for a server; backend_give_up may then cancel the start */
	bool start_asks;
	/* On the I/O thread. Must call backend_stopped() when no operation is in progress. */
	void (*stop)(struct backend *b);
	void (*fini)(struct backend *b);
	/*
	 * Called on the I/O thread. Must answer RQ with backend_answer() exactly once, now or
	 * later. If RQ is about an existing job, the store has the job with RQ's id and uid: in
	 * history/ for BACKEND_FORGET, otherwise in jobs/. The implementation may have newer data
	 * than the store, so it must check that the job allows the action.
	 */
	void (*request[BACKEND_N_REQUESTS])(struct backend *b, struct backend_request *rq);
	/* See backend_text. Any thread. */
	int (*text)(struct backend *b, const struct spec_job *job, enum backend_text which,
		    char **ret, size_t *ret_len);
	/* See backend_events. This member is NULL if the backend has no events. */
	int (*events)(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		      int64_t *ret_changed);
	int64_t (*stale_since)(struct backend *b);
	/*
	 * Called only for a JOB that has ended. True if all available output of JOB is on disk, and
	 * kxfs is not removing any of it. On the I/O thread.
	 */
	bool (*is_settled)(struct backend *b, const struct spec_job *job);
	/* Return the name of this backend's directory in the archive. Any thread. */
	const char *(*namespace)(struct backend *b);
	/*
	 * True if the store has every existing job. On the I/O thread. NULL if this is always true
	 * after the start.
	 */
	bool (*is_whole)(struct backend *b);
	/* See backend_trouble. This member may be NULL. */
	char *(*trouble)(struct backend *b);
	int (*queues)(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
	struct spec_queue_view *(*queue)(struct backend *b, const char *name);
	/*
	 * Set *RET (malloc'ed) to the text of a queue. JOBS are the N snapshots in jobs/. If this
	 * member is NULL, backend.c makes the text from the queue's view.
	 */
	void (*queue_text)(struct backend *b, const struct spec_job *const *jobs, size_t n,
			   char **ret, size_t *ret_len);
	/* Return a new reference to the ClusterQueue NAME; NULL if the ClusterQueue is unknown. */
	struct spec_cluster_queue_view *(*cluster_queue)(struct backend *b, const char *name);
	/* See backend_wanted. NULL if the backend never requests data on demand. */
	void (*wanted)(struct backend *b, const struct spec_job *job);
	/* See backend_usage_wanted. This member may be NULL. */
	void (*usage_wanted)(struct backend *b);
	void (*info)(struct backend *b, FILE *out);
	void (*metrics)(struct backend *b, FILE *out);
};

extern const struct backend_ops local_ops, kube_ops;

struct backend {
	const struct backend_ops *ops;
	struct backend_config config;
	struct backend_events events;
	struct loop *loop;
	struct store *store;
	struct output *output;
	struct records *records; /* loaded completely before OPS->start is called */
	struct held *held;
	struct archive *archive; /* NULL if no archive is configured */
	void *impl;		 /* data of the implementation (backend_set_impl) */

	/* Only for backend.c and request.c: */
	struct wait started, stopped;
	/* UP: from the start to the stop. STOPPING: after the stop was requested. I/O thread. */
	bool up, stopping;
	unsigned n_stopped; /* number of parts that have stopped (backend_stopped) */
	/* numbers of requests of each kind that have [0] succeeded, [1] failed */
	atomic_ullong answered[BACKEND_N_REQUESTS][2];
};

/* A request in progress. Plain data; it owns its strings, which are valid until backend_answer. */
struct backend_request {
	struct backend *b;
	enum backend_request_kind kind;
	uint64_t since; /* when the request began, in ms */
	char *file;
	char *text;
	size_t len;
	char *submitter;
	/* the UUID of the submission; NULL in a dry run of a job that will not be held */
	char *submission;
	mode_t readable; /* READABLE, OWNED, OWNER, GROUP: see struct backend_submission */
	bool owned;
	uid_t owner;
	gid_t group;
	/* the seed from which kxfs derives the job's name; used only if HELD is true */
	uint64_t seed[2];
	/*
	 * In a SUBMIT, true if the job was held and must be launched now. The close() of its file
	 * has returned long ago, and an earlier kxfs that crashed may have launched it already. If
	 * kxfs chooses the job's uid, the uid is SUBMISSION. In a DRY_RUN, true if the job will be
	 * held. The dry run must then refuse a job that this mount could not launch.
	 */
	bool held;
	/*
	 * With HELD: true if an earlier request may have launched the job, although kxfs has not
	 * seen it.
	 */
	bool again;
	/* In a SUBMIT with HELD: the backend that the dry run reported. Otherwise NULL. */
	char *backend;
	char *id;
	char *uid;
	enum spec_action action;
	char *argument; /* the argument of the action; NULL if there is none */
	backend_reply_fn reply;
	bool (*waits)(void *data); /* see struct backend_submission */
	void *data;
	struct backend_request *next; /* the next request that waits for the same job (held.c) */
};

/* Reply to RQ with RESULT, then free RQ. */
void backend_reply(struct backend_request *rq, const struct backend_result *result);
/* Reply to RQ with ERR, ID and TEXT, then free RQ. ID and TEXT may be NULL. */
void backend_answer(struct backend_request *rq, int err, const char *id, const char *text);
/* Reply to RQ with ERR and a text, then free RQ. FMT formats the text as in printf. */
void backend_refuse(struct backend_request *rq, int err, const char *fmt, ...) printf_like(3, 4);
/* Refuse RQ with -EINVAL, because its action has no effect on a job in PHASE. */
void backend_answer_no_effect(struct backend_request *rq, const char *phase);

/*
 * Make the head of the record for the submission RQ. The caller sets the head's state, backend,
 * namespace and id, and frees the head with spec_head_free.
 */
struct spec_head *backend_head(const struct backend_request *rq);

/* --- for backend.c and held.c --- */

struct backend_request *backend_request_new(struct backend *b, enum backend_request_kind kind,
					    backend_reply_fn reply, void *data);
/* Pass RQ on to the implementation. */
void backend_pass(struct backend_request *rq);
/*
 * Make a request of KIND for the held job with the record HEAD and the document TEXT. Pass it on to
 * the implementation, and call REPLY with the result.
 */
void backend_pass_held(struct backend *b, const struct spec_head *head,
		       enum backend_request_kind kind, bool again, const char *text, size_t len,
		       backend_reply_fn reply, void *data);

/* --- reports of an implementation --- */

static inline void backend_set_impl(struct backend *b, void *impl)
{
	b->impl = impl;
}

static inline void backend_ready(void *data)
{
	struct backend *b = data;

	if (b->config.archives)
		archive_begin(b->archive, b->ops->namespace(b));
	wait_set(&b->started, 0, NULL);
}

/*
 * Report the result of the first list of jobs. ERR is 0 if the list has arrived. Otherwise the list
 * has failed with ERR, for the reason TEXT. Only the first call has an effect, and none after a
 * cancelled start. BACKEND is a struct backend; a void pointer lets callers use this function as a
 * callback.
 */
static inline void backend_started(void *backend, int err, const char *text)
{
	struct backend *b = backend;

	if (err)
		wait_set(&b->started, err, text);
	else
		held_begin(b->held, backend_ready, b);
}

/*
 * Report that the implementation has stopped and has no operation in progress. Each call stops the
 * next of the other parts, which calls this function again when it has stopped.
 */
static inline void backend_stopped(void *backend)
{
	struct backend *b = backend;

	switch (b->n_stopped++) {
	case 0:
		return held_stop(b->held, backend_stopped, b);
	case 1:
		return records_stop(b->records, backend_stopped, b);
	case 2:
		return output_stop(b->output, backend_stopped, b);
	case 3:
		if (b->archive)
			return archive_stop(b->archive, backend_stopped, b);
	}
	wait_set(&b->stopped, 0, NULL);
}

/*
 * Call backend_events.expired for the job whose record has the key KEY, unless its file has launched
 * another job since.
 */
static inline void backend_expired(const struct backend *b, const char *key)
{
	const struct record *r = records_by_key(b->records, key);
	const struct spec_head *head = r ? record_head(r) : NULL;

	if (b->events.expired && head && head->own && *head->file && record_is_newest(r))
		b->events.expired(b->events.data, head->file, head->digest);
}

/* Return the name of KIND for messages and metrics: "submit", ... */
const char *request_name(enum backend_request_kind kind);
