/* SPDX-License-Identifier: MIT */
/*
 * The interface between the backend and its implementations, local/ and kube/. Only the
 * implementations, backend.c, and the files of this folder include this header.
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

/* The functions of an implementation. Unless noted otherwise, they run on the I/O thread. */
struct backend_ops {
	/* See backend_key. Any thread. */
	int (*key)(const struct backend_config *config, char **ret, char **ret_text);
	/* Called before the loop runs. Must call backend_set_impl(), and must not wait. */
	int (*init)(struct backend *b, char **ret_text);
	/* Must call backend_started() with the result of the first list. */
	void (*start)(struct backend *b);
	/* Called after backend_started(). May be NULL. */
	void (*take_charge)(struct backend *b);
	bool start_asks; /* START waits for a server, so backend_give_up may cancel it */
	/* Must call backend_stopped() when no operation is in progress. */
	void (*stop)(struct backend *b);
	void (*fini)(struct backend *b); /* called after the loop has stopped */
	/*
	 * Must answer RQ exactly once, now or later. The store has the job that RQ is about: in
	 * history/ for BACKEND_FORGET, otherwise in jobs/. The implementation may know newer data,
	 * so it checks whether the job allows the action.
	 */
	void (*request[BACKEND_N_REQUESTS])(struct backend *b, struct backend_request *rq);
	/*
	 * Any thread may call TEXT, EVENTS and STALE_SINCE; see backend.h. EVENTS is NULL if jobs
	 * can't have events.
	 */
	int (*text)(struct backend *b, const struct spec_job *job, enum backend_text which,
		    char **ret, size_t *ret_len);
	int (*events)(struct backend *b, const struct spec_job *job, char **ret, size_t *ret_len,
		      int64_t *ret_changed);
	int64_t (*stale_since)(struct backend *b);
	/*
	 * True if all available output of JOB is on disk, and kxfs is not removing any of it. JOB
	 * must have ended.
	 */
	bool (*is_settled)(struct backend *b, const struct spec_job *job);
	/* Return the name of this backend's directory in the archive. Any thread. */
	const char *(*namespace)(struct backend *b);
	/* True if the store has every existing job. NULL: always true after the start. */
	bool (*is_whole)(struct backend *b);
	/* May be NULL. */
	char *(*trouble)(struct backend *b);
	/*
	 * Any thread may call the members below; see backend.h. They may be NULL, except INFO and
	 * METRICS.
	 */
	int (*queues)(struct backend *b, struct spec_queue_view ***ret, size_t *ret_n);
	struct spec_queue_view *(*queue)(struct backend *b, const char *name);
	/*
	 * Set *RET (malloc'ed) to the text of a queue. JOBS has all jobs in jobs/. If this member
	 * is NULL, backend.c makes the text.
	 */
	void (*queue_text)(struct backend *b, const struct spec_job *const *jobs, size_t n,
			   char **ret, size_t *ret_len);
	/* Return a new reference to the ClusterQueue NAME, or NULL. */
	struct spec_queue_view *(*cluster_queue)(struct backend *b, const char *name);
	void (*wanted)(struct backend *b, enum backend_data which);
	void (*info)(struct backend *b, FILE *out);
	void (*metrics)(struct backend *b, FILE *out);
};

extern const struct backend_ops local_ops, kube_ops;

/*
 * Removals whose answers wait until UNSAVED is 0. The launch of a held job may depend on the end of
 * a removed job. After a restart, only the held job's record shows that the removed job had ended.
 * Plain data.
 */
struct removal_waits {
	size_t unsaved; /* number of held jobs whose record on disk lacks a condition that is met */
	struct backend_request *list;
};

struct backend {
	const struct backend_ops *ops;
	struct backend_config config;
	struct backend_events events;
	struct loop *loop;
	struct store *store;
	struct output *output;
	struct records *records; /* completely loaded before OPS->start is called */
	struct held *held;
	struct archive *archive; /* NULL if there is no archive */
	void *impl;

	/* Only for backend.c and request.c: */
	struct wait started, stopped;
	/* I/O thread. UP: between start and stop. STOPPING: a stop was requested. */
	bool up, stopping;
	unsigned n_stopped; /* number of stopped parts (backend_stopped) */
	struct removal_waits removals;
	/* number of requests of each kind: [0] succeeded, [1] failed */
	atomic_ullong answered[BACKEND_N_REQUESTS][2];
};

/* A request in progress. Plain data. It owns its strings until backend_answer. */
struct backend_request {
	struct backend *b;
	enum backend_request_kind kind;
	uint64_t since; /* when the request began, by loop_now_ms */
	char *file;
	char *text;
	size_t len;
	char *submitter;
	char *submission; /* UUID; NULL in a dry run of a job that will not be held */
	mode_t readable;  /* READABLE, OWNED, OWNER, GROUP: see struct backend_submission */
	bool owned;
	uid_t owner;
	gid_t group;
	uint64_t seed[2]; /* with HELD: the seed of the job's name */
	/*
	 * In a SUBMIT: true if the job was held. The user has closed the file long ago. An earlier
	 * kxfs may have launched the job already. If the implementation chooses the job's uid, it
	 * must choose SUBMISSION.
	 *
	 * In a DRY_RUN: true if the job will be held. The implementation must refuse a job that
	 * this mount could not launch.
	 */
	bool held;
	bool again;    /* with HELD: an earlier request may have launched the job */
	char *backend; /* with HELD, in a SUBMIT: the backend that the dry run chose */
	char *id;
	char *uid;
	enum spec_action action;
	char *argument; /* of ACTION, or NULL */
	backend_reply_fn reply;
	bool (*waits)(void *data); /* see struct backend_submission */
	void *data;
	struct loop_timer late;	      /* runs while RQ is in struct removal_waits */
	struct backend_request *next; /* the next request that waits */
};

/* Each of the next four functions replies to RQ, and frees RQ. ID and TEXT may be NULL. */
void backend_reply(struct backend_request *rq, const struct backend_result *result);
void backend_answer(struct backend_request *rq, int err, const char *id, const char *text);
void backend_refuse(struct backend_request *rq, int err, const char *fmt, ...) printf_like(3, 4);
/* Reply with -EINVAL, because RQ's action has no effect on a job in PHASE. */
void backend_answer_no_effect(struct backend_request *rq, const char *phase);

/* Answer all removals that wait, if UNSAVED is 0 or the mount is ending. */
void backend_answer_removals(struct backend *b);

/* Make the head of a record. The caller sets its state, backend, namespace and id, and frees it. */
struct spec_head *backend_head(const struct backend_request *rq);

/* --- for backend.c and held.c --- */

struct backend_request *backend_request_new(struct backend *b, enum backend_request_kind kind,
					    backend_reply_fn reply, void *data);
void backend_pass(struct backend_request *rq);
/* Pass on a request of KIND for the held job with the record HEAD and the document TEXT. */
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
 * Report the result of the first list of jobs. ERR is 0, or a negative errno with the reason TEXT.
 * Further calls, and calls after backend_give_up, don't change the result of the start. BACKEND is
 * a struct backend.
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
 * Report that the implementation has stopped. This function then stops the other parts one after
 * another. Each part calls this function again when that part has stopped.
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

/* Call backend_events.expired for the record KEY if it is the newest launch of its file. */
static inline void backend_expired(const struct backend *b, const char *key)
{
	const struct record *r = records_by_key(b->records, key);
	const struct spec_head *head = r ? record_head(r) : NULL;

	if (b->events.expired && head && head->own && *head->file && record_is_newest(r))
		b->events.expired(b->events.data, head->file, head->digest);
}

const char *request_name(enum backend_request_kind kind);
