/* SPDX-License-Identifier: MIT */
/*
 * Finds out whether the cluster has Kueue, in which version, and the position of each job in its queues. Nothing else
 * is requested of a cluster without Kueue. The positions come from Kueue's visibility API, which can't be watched:
 * they are requested while somebody reads them, and go into the world, and from there into the snapshots. I/O thread,
 * unless noted otherwise.
 */
#pragma once

#include "backend/kube/watches.h"

struct kueue;

/* All is borrowed. */
struct kueue_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct watches *watches; /* watches_start_kueue is called with the result */
	const char *namespace;
};

struct kueue *kueue_new(const struct kueue_config *config);
/* Find out whether there is a Kueue. Only the first call has an effect. */
void kueue_start(struct kueue *k);
void kueue_stop(struct kueue *k);
void kueue_free(struct kueue *k); /* NULL is allowed */

/* Any thread: somebody reads a position in LocalQueue NAME. Never blocks; costs a request every 5 s. */
void kueue_wanted(struct kueue *k, const char *name);
/* Any thread: return the version of Kueue's API ("kueue.x-k8s.io/v1beta2"), static; NULL if unknown. */
const char *kueue_version(struct kueue *k);
/* Any thread: print the keys of .kxfs/info about Kueue, and what the server refuses. */
void kueue_info(struct kueue *k, FILE *out);
void kueue_refused(struct kueue *k, struct watches_refused *list);
