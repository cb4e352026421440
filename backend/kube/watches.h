/* SPDX-License-Identifier: MIT */
/*
 * The watches of a mount; all objects go into the world. The watches of jobs and pods are required: the start ends
 * when their first lists have arrived, and from then on their errors show whether the jobs are confirmed. Of several
 * kinds one is enough. The other watches (pod groups, events, queues) are optional. .kxfs/info reports what the user
 * may not watch, and what that costs. I/O thread, unless noted otherwise.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/kube/publish.h"
#include "backend/kube/world.h"

struct watches;

struct watches_events {
	/* The first lists of jobs and pods have arrived. */
	void (*listed)(void *data);
	/*
	 * Called once. ERR 0, after listed(): queues and Kueue's Workloads are known, or won't be soon. ERR is a
	 * negative errno: the first lists have failed, for the reason TEXT.
	 */
	void (*started)(void *data, int err, const char *text);
	/* The server no longer serves jobs of some kind. Only after listed(); repeated after a while. */
	void (*unserved)(void *data);
	void *data;
};

/* All is borrowed. */
struct watches_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct publish *publish;
	const char *namespace;
	const char *selector; /* label selector of jobs; "": all */
	/* Watch only jobs, pods and groups with this value of SPEC_LABEL_USER; "": all. */
	const char *user;
	const char *own_queue; /* the queue of the mount's own jobs, or "" */
	struct watches_events events;
};

struct watches *watches_new(const struct watches_config *config);
/* Start the required watches; the world must have its kinds. */
void watches_start(struct watches *w);
/* The start also waits for watches_start_kueue. */
void watches_await_kueue(struct watches *w);
/*
 * Watch Kueue's objects in VERSION (static) of its API. Call this at most once with a VERSION.
 * NULL: no Kueue was found so far.
 */
void watches_start_kueue(struct watches *w, const char *version);
/* The world has other kinds: watch their jobs and pods instead of those of the old kinds. */
void watches_switch(struct watches *w);
/* Forget the jobs of SORT. The caller then calls watches_switch. */
void watches_drop(struct watches *w, enum world_sort sort);
/* The server has answered another request: end the pauses of watches after failures. */
void watches_retry_now(void *watches);
void watches_stop(struct watches *w);
void watches_free(struct watches *w); /* NULL is allowed */

/* The reply to a request had a job of SORT, in VERSION. */
void watches_replied(struct watches *w, enum world_sort sort, const char *version);
/* The server may have been restored from a backup: let the watch of the jobs of SORT check its version. */
void watches_doubt(struct watches *w, enum world_sort sort);
/* Return the version up to which the watch of the jobs of SORT is complete; "" while it relists. */
const char *watches_version(const struct watches *w, enum world_sort sort);
/*
 * Return why the server can't be reached, malloc'ed, according to the last result of the watches of jobs or pods; NULL
 * if it can. Since the caller wants to use the server, the watches retry immediately.
 */
char *watches_offline(struct watches *w);

/* Any thread: return why the jobs of SORT are not confirmed, malloc'ed; NULL if they are. */
char *watches_trouble(struct watches *w, enum world_sort sort);
/* Any thread: true if the world has this sort, as it is or as it was when the server could last be reached. */
bool watches_know(struct watches *w, enum world_sort sort);
/* Any thread: .kxfs/info and .kxfs/metrics. */
int64_t watches_stale_since(struct watches *w); /* 0: all jobs are confirmed */
void watches_info(struct watches *w, FILE *out);
/* The state of printing the list `refused` of .kxfs/info. */
struct watches_refused {
	FILE *out;
	size_t n;
};
void watches_refused(struct watches *w, struct watches_refused *list);
void watches_print_refused(struct watches_refused *list, const char *verb, const char *resource,
			   const char *cost, const char *answer);
void watches_metrics(struct watches *w, FILE *out);
/* Any thread: return the number of objects received. */
size_t watches_n_objects(const struct watches *w);
