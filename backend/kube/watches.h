/* SPDX-License-Identifier: MIT */
/*
 * The watches of a mount. It needs those of the jobs of its kinds and of their pods: the start is over when both first
 * lists are in, and from then on their errors show whether the view is confirmed. One kind is enough, and .kxfs/info
 * reports what can't be had of the others. The other watches (pod groups, events, queues) are optional: a mount works
 * without what it may not see, and .kxfs/info reports what that costs. All that the watches receive goes to the world.
 * I/O thread, unless noted otherwise.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/kube/world.h"

struct watches;

struct watches_events {
	/* The first lists of jobs and of pods are in. */
	void (*listed)(void *data);
	/*
	 * Called once. ERR 0, after listed(): it is known now which queues there are and what Kueue says of the jobs,
	 * or that can't be had soon. ERR is a negative errno: the first lists can't be had, for the reason TEXT.
	 */
	void (*started)(void *data, int err, const char *text);
	/* The server no longer serves jobs of some sort. Only after listed(); called again after a while. */
	void (*unserved)(void *data);
	void *data;
};

/* What publish is told, and asked. */
struct watches_news {
	/* Since SINCE (ns) the server has not confirmed what is shown; 0: it confirms it again. Only after listed(). */
	void (*confirmed)(void *data, int64_t since);
	/* Like confirmed(), for the jobs of SORT only. */
	void (*confirmed_kind)(void *data, enum world_sort sort, int64_t since);
	/*
	 * The first list of jobs of a sort, or of a part, has come after listed(), or that of the pods after
	 * watches_switch; or it is known that a part can't be had.
	 */
	void (*listed_late)(void *data);
	/* Is a job of SORT deleted of which no watch has told that it is gone? */
	bool (*unreported)(void *data, enum world_sort sort);
	void *data;
};

/* All is borrowed. */
struct watches_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	const char *namespace;
	const char *selector; /* selector of the jobs' labels; "": all */
	/* Value of SPEC_LABEL_USER that jobs, pods and groups have; "": any or none. */
	const char *user;
	const char *own_queue; /* the queue of the mount's own jobs; "": not known */
	struct watches_events events;
	struct watches_news news;
};

struct watches *watches_new(const struct watches_config *config);
/* Begin with the watches that are needed; the world must know its kinds. */
void watches_start(struct watches *w);
/* It is being found out whether the cluster has Kueue: the start waits for watches_start_kueue, too. */
void watches_await_kueue(struct watches *w);
/*
 * The cluster has Kueue, with its API in VERSION (static): watch what Kueue says of the jobs; called at most once.
 * NULL: as far as is known now the cluster has none.
 */
void watches_start_kueue(struct watches *w, const char *version);
/* The world has other kinds now: watch their jobs and pods, in place of those of the old kinds. */
void watches_switch(struct watches *w);
/* There are no jobs of SORT any more: the world forgets them. The caller then calls watches_switch. */
void watches_drop(struct watches *w, enum world_sort sort);
/* The server has answered another request: watches that pause after a failure ask now. */
void watches_retry_now(void *watches);
void watches_stop(struct watches *w);
void watches_free(struct watches *w); /* NULL is allowed */

/* A reply to a request has brought a job of SORT, in VERSION. */
void watches_replied(struct watches *w, enum world_sort sort, const char *version);
/* The server may have been set back: the watch of the jobs of SORT asks for its version. */
void watches_doubt(struct watches *w, enum world_sort sort);
/* The version up to which the watch of the jobs of SORT has brought all changes; "" while it lists anew. */
const char *watches_version(const struct watches *w, enum world_sort sort);
/*
 * Why the server can't be reached, as the watch of the jobs, or that of the pods, last found; malloc'ed. NULL: it can
 * be. The caller wants to use the server, so the watches find out at once whether that is still so.
 */
char *watches_offline(struct watches *w);

/* Any thread: why the jobs of SORT can't be had, or are not confirmed, malloc'ed; NULL: they are. */
char *watches_trouble(struct watches *w, enum world_sort sort);
/* Any thread: does the world know this sort, as it is now or as it was when the server could last be reached? */
bool watches_know(struct watches *w, enum world_sort sort);
/* Any thread: what .kxfs/info and .kxfs/metrics say of the watches. */
int64_t watches_stale_since(struct watches *w); /* 0: what is shown is confirmed; any thread */
void watches_info(struct watches *w, FILE *out);
/* The list of what the server refuses, as .kxfs/info shows it, while it is written. */
struct watches_refused {
	FILE *out;
	size_t n;
};
void watches_refused(struct watches *w, struct watches_refused *list);
void watches_print_refused(struct watches_refused *list, const char *verb, const char *resource,
			   const char *cost, const char *answer);
void watches_metrics(struct watches *w, FILE *out);
/* Any thread: how many objects have come from the server. */
size_t watches_n_told(const struct watches *w);
