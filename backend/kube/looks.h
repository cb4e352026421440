/* SPDX-License-Identifier: MIT */
/*
 * What pods use, as the cluster tells it at metrics.k8s.io: one LIST of the namespace every 15 s, but only while a job
 * runs and somebody wants to know: whoever has read it in the last minutes, or, where output is captured, who reads it
 * later. A cluster that does not tell (no metrics-server, no right) is asked again after ten minutes. What it says goes
 * into the world, and from there into the snapshots. I/O thread, but for what says "any thread".
 */
#pragma once

#include "backend/kube/watches.h"

struct looks;

/* All is borrowed. */
struct looks_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct watches *watches; /* know whether the server can be reached at all */
	const char *namespace;
	/* A pod of JOB has been looked at. */
	void (*looked)(void *data, const struct world_job *job);
	void *data;
};

struct looks *looks_new(const struct looks_config *config);
/* A job runs now (ANY), and one whose output is captured (CAPTURED), or not any more. */
void looks_set_running(struct looks *l, bool any, bool captured);
void looks_stop(struct looks *l);
void looks_free(struct looks *l); /* NULL is allowed */

/* Any thread: somebody reads what is used. It never waits. */
void looks_wanted(struct looks *l);
/* Any thread: what .kxfs/info says, and what of it the server refuses. */
void looks_info(struct looks *l, FILE *out);
void looks_refused(struct looks *l, struct watches_refused *list);
