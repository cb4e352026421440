/* SPDX-License-Identifier: MIT */
/*
 * Finds out what pods use, as the cluster tells it at metrics.k8s.io: by one LIST of the namespace every 15 s, but only
 * while a job runs and somebody wants to know. That is whoever has read such figures in the last minutes, or, where
 * output is captured, whoever will read them later. A cluster that does not tell (no metrics-server, no right) is asked
 * again after ten minutes. The figures go into the world, and from there into the snapshots. I/O thread, but for what
 * says "any thread".
 */
#pragma once

#include "backend/kube/watches.h"

struct looks;

/* All is borrowed. */
struct looks_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct watches *watches; /* these know whether the server can be reached at all */
	const char *namespace;
	/* There is a new look at a pod of JOB. */
	void (*looked)(void *data, const struct world_job *job);
	void *data;
};

struct looks *looks_new(const struct looks_config *config);
/* Does a job run now (ANY), and does one run whose output is captured (CAPTURED)? */
void looks_set_running(struct looks *l, bool any, bool captured);
void looks_stop(struct looks *l);
void looks_free(struct looks *l); /* NULL is allowed */

/* Any thread: somebody reads what is used. This never waits. */
void looks_wanted(struct looks *l);
/* Any thread: print what .kxfs/info says of the figures, with what the server refuses of them. */
void looks_info(struct looks *l, FILE *out);
void looks_refused(struct looks *l, struct watches_refused *list);
