/* SPDX-License-Identifier: MIT */
/*
 * Samples of the CPU and memory of pods, from metrics.k8s.io: one LIST of the namespace every 15 s, but only while a
 * job runs, and only for some minutes after somebody has read them or while its output is captured, since the record
 * of a captured job shows them later. If the cluster does not serve them (no metrics-server, no right), the next
 * request follows after ten minutes. The samples go into the world, and from there into the snapshots. I/O thread,
 * unless noted otherwise.
 */
#pragma once

#include "backend/kube/watches.h"

struct samples;

/* All is borrowed. */
struct samples_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct watches *watches;
	const char *namespace;
	/* There is a new sample of a pod of JOB. */
	void (*sampled)(void *data, const struct world_job *job);
	void *data;
};

struct samples *samples_new(const struct samples_config *config);
/* ANY: a job runs now; CAPTURED: one runs whose output is captured. */
void samples_set_running(struct samples *l, bool any, bool captured);
void samples_stop(struct samples *l);
void samples_free(struct samples *l); /* NULL is allowed */

/* Any thread: somebody reads the samples. Never blocks. */
void samples_wanted(struct samples *l);
/* Any thread: print the keys of .kxfs/info about the samples, and what the server refuses. */
void samples_info(struct samples *l, FILE *out);
void samples_refused(struct samples *l, struct watches_refused *list);
