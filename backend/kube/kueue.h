/* SPDX-License-Identifier: MIT */
/*
 * Kueue, as far as it is asked: whether the cluster has it, in which version, and who stands where in its queues. The
 * first is found out once, when the mount has started; a cluster without Kueue is asked nothing else. Places are told
 * of by Kueue's visibility API, which can't be watched: it is asked while somebody reads, and what it says goes into
 * the world, from where it comes into the snapshots. I/O thread, but for what says "any thread".
 */
#pragma once

#include "backend/kube/watches.h"

struct kueue;

/* All is borrowed. */
struct kueue_config {
	struct loop *loop;
	struct http *http;
	struct world *world;
	struct watches *watches; /* watches_start_kueue is called when there is a Kueue */
	const char *namespace;
};

struct kueue *kueue_new(const struct kueue_config *config);
/* Find out whether there is a Kueue; nothing, if that was done before. */
void kueue_start(struct kueue *k);
void kueue_stop(struct kueue *k);
void kueue_free(struct kueue *k); /* NULL is allowed */

/* Any thread: somebody reads where a job stands in LocalQueue NAME. It never waits, and costs a request every 5 s. */
void kueue_wanted(struct kueue *k, const char *name);
/* Any thread: the version of its API ("kueue.x-k8s.io/v1beta2"), static; NULL: not known, or there is none. */
const char *kueue_version(struct kueue *k);
/* Any thread: what .kxfs/info says, and what of it the server refuses. */
void kueue_info(struct kueue *k, FILE *out);
void kueue_refused(struct kueue *k, struct watches_refused *list);
