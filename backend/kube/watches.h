/* SPDX-License-Identifier: MIT */
/*
 * All watches of a mount. They put the objects that they receive into the world. The watches of
 * pods and of at least one kind of jobs are required. The start of the mount waits for their first
 * lists. While they fail, the jobs are not confirmed: kxfs does not know whether it shows their
 * current state. The other watches (pod groups, events, queues) are optional. I/O thread, unless
 * noted otherwise.
 */
#pragma once

#include "backend/client/http.h"
#include "backend/kube/publish.h"
#include "backend/kube/world.h"

struct watches;

struct watches_events {
	/* Called when the first lists of jobs and pods have arrived. */
	void (*listed)(void *data);
	/*
	 * Called once. If ERR is 0, listed() was called before. Also, the queues and Kueue's
	 * Workloads have been listed, unless kxfs has stopped waiting for them. If ERR is a
	 * negative errno, the first lists have failed, for the reason TEXT.
	 */
	void (*started)(void *data, int err, const char *text);
	/* Called after listed(), repeatedly while the server does not serve a kind of jobs. */
	void (*unserved)(void *data);
	void *data;
};

/* All members are borrowed. */
struct watches_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct publish *publish;
	const char *namespace;
	const char *selector; /* label selector of jobs; "" selects all jobs */
	const char *user;     /* if not "", watch only objects with this value of SPEC_LABEL_USER */
	const char *own_queue; /* the queue of the mount's own jobs, or "" */
	struct watches_events events;
};

/* The objects that kinds.c, kueue.c and samples.c use for their requests. All are borrowed. */
struct watches_access {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct watches *watches;
	const char *namespace;
};

struct watches *watches_new(const struct watches_config *config);
/* Start the required watches. Call this when the kinds of the world are set. */
void watches_start(struct watches *w);
/* Call this once. From now on, watch Kueue's objects if a kind needs them. VERSION is static. */
void watches_set_kueue(struct watches *w, const char *version);
/* Watch the jobs and pods of the kinds that the world has now, because the kinds have changed. */
void watches_switch(struct watches *w);
/* Stop watching the jobs of TYPE, and forget them. The caller must then call watches_switch. */
void watches_drop(struct watches *w, enum world_type type);
/* Let failing watches retry now, because the server has answered another request. */
void watches_retry_now(void *watches);
void watches_stop(struct watches *w);
void watches_free(struct watches *w); /* NULL is allowed */

/*
 * Put the job of KIND in JSON, a reply, into the world. Return the job as it is now. Return NULL if
 * JSON can't be parsed, if the job was deleted, or if the mount does not show KIND any more.
 */
const struct world_job *watches_reply(struct watches *w, const struct spec_kind *kind,
				      const char *json, size_t len);
/*
 * Return why the watches of jobs and pods can't reach the server, malloc'ed; NULL if they can. Make
 * failing watches retry immediately, because the caller needs the server.
 */
char *watches_offline(struct watches *w);

/* Return why the jobs of TYPE are not confirmed, malloc'ed; NULL if they are. Any thread. */
char *watches_trouble(struct watches *w, enum world_type type);
/* The requests that the server refuses, in the order of `refused` in .kxfs/info. */
enum watches_refusal {
	REFUSED_KINDS,					/* one for each slot of kinds.c */
	REFUSED_TYPES = REFUSED_KINDS + SPEC_MAX_KINDS, /* one for each type, for watches.c */
	REFUSED_POSITIONS = REFUSED_TYPES + WORLD_N_TYPES,
	REFUSED_SAMPLES,
	REFUSED_LOGS,
	N_REFUSED
};
/*
 * Record that the server refuses the request PLACE (enum watches_refusal): VERB for RESOURCE, a
 * qualified name. COST explains what users lack because of this. ANSWER is the server's text, or
 * NULL if the server does not refuse the request. VERB and COST are static strings. Any thread.
 */
void watches_refuse(struct watches *w, unsigned place, const char *verb, const char *resource,
		    const char *cost, const char *answer);
/* The functions below provide data for .kxfs/info and .kxfs/metrics. Any thread may call them. */
int64_t watches_stale_since(struct watches *w); /* in ns; 0 if all jobs are confirmed */
void watches_info(struct watches *w, FILE *out);
void watches_print_refused(struct watches *w, FILE *out);
void watches_metrics(struct watches *w, FILE *out);
size_t watches_n_objects(const struct watches *w);
