/* SPDX-License-Identifier: MIT */
/*
 * All watches of a mount. They put the objects that they receive into the world. The watches of pods and of at
 * least one kind of jobs are required. The start waits for the first lists of these watches. Later, their errors
 * show whether the jobs are confirmed. The other watches (pod groups, events, queues) are optional. .kxfs/info
 * shows which resources the user may not watch, and what users lack without them. I/O thread, unless noted
 * otherwise.
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
	 * Called once. ERR is 0: listed() was called, and the queues and Kueue's Workloads are listed, or kxfs does
	 * not wait for them any longer. ERR is a negative errno: the first lists have failed, for the reason TEXT.
	 */
	void (*started)(void *data, int err, const char *text);
	/*
	 * The server no longer serves the jobs of some kind. Called only after listed(), and repeatedly while this
	 * remains so.
	 */
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
/* Start the required watches. The kinds of the world must be set. */
void watches_start(struct watches *w);
/* Make the start also wait for a call of watches_start_kueue. */
void watches_await_kueue(struct watches *w);
/*
 * Watch Kueue's objects in VERSION of its API, a static string. If VERSION is NULL, Kueue was not found, and this
 * may be called again later.
 */
void watches_start_kueue(struct watches *w, const char *version);
/* The kinds of the world have changed: watch their jobs and pods instead of those of the old kinds. */
void watches_switch(struct watches *w);
/* Stop watching the jobs of TYPE, and forget them. The caller then calls watches_switch. */
void watches_drop(struct watches *w, enum world_type type);
/* Let watches that pause after failures retry now. Call this when the server has answered another request. */
void watches_retry_now(void *watches);
void watches_stop(struct watches *w);
void watches_free(struct watches *w); /* NULL is allowed */

/* Note that the reply to a request contained a job of TYPE with the resource version VERSION. */
void watches_replied(struct watches *w, enum world_type type, const char *version);
/*
 * Make the watch of the jobs of TYPE compare its resource version with the server's. Call this when the server may
 * have been restored from a backup.
 */
void watches_doubt(struct watches *w, enum world_type type);
/* Return the resource version up to which the watch of the jobs of TYPE is complete; "" while it relists. */
const char *watches_version(const struct watches *w, enum world_type type);
/*
 * Return the reason why the server can't be reached, malloc'ed; NULL if it can. The last results of the watches of
 * jobs and pods decide. The caller needs the server, so watches that fail retry immediately.
 */
char *watches_offline(struct watches *w);

/* Return the reason why the jobs of TYPE are not confirmed, malloc'ed; NULL if they are. Any thread. */
char *watches_trouble(struct watches *w, enum world_type type);
/*
 * True if the objects of TYPE are known: as they are now, or as they were when the server could last be reached.
 * Any thread.
 */
bool watches_know(struct watches *w, enum world_type type);
/* The next functions are for .kxfs/info and .kxfs/metrics. Any thread. */
int64_t watches_stale_since(struct watches *w); /* in ns; 0: all jobs are confirmed */
void watches_info(struct watches *w, FILE *out);
/* The list `refused` of .kxfs/info while it is being printed. N: number of items printed so far. */
struct watches_refused {
	FILE *out;
	size_t n;
};
void watches_refused(struct watches *w, struct watches_refused *list);
void watches_print_refused(struct watches_refused *list, const char *verb, const char *resource,
			   const char *cost, const char *answer);
void watches_metrics(struct watches *w, FILE *out);
/* Return how many objects the watches have received. Any thread. */
size_t watches_n_objects(const struct watches *w);
