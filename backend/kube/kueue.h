/* SPDX-License-Identifier: MIT */
/*
 * Asks the cluster about Kueue: whether the cluster has it, in which version, and which place each job has in its
 * queues. The first is found out once, when the mount has started; a cluster without Kueue is asked nothing else. The
 * places are told by Kueue's visibility API, which can't be watched: it is asked while somebody reads, and its answers
 * go into the world, from where they come into the snapshots. I/O thread, but for what says "any thread".
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
/* Find out whether there is a Kueue. Does nothing if that was found out before. */
void kueue_start(struct kueue *k);
void kueue_stop(struct kueue *k);
void kueue_free(struct kueue *k); /* NULL is allowed */

/* Any thread: somebody reads where a job stands in LocalQueue NAME. This never waits, and costs a request every 5 s. */
void kueue_wanted(struct kueue *k, const char *name);
/*
 * Any thread: the version of Kueue's API ("kueue.x-k8s.io/v1beta2"), static; NULL: it is not known, or there is no
 * Kueue.
 */
const char *kueue_version(struct kueue *k);
/* Any thread: print what .kxfs/info says of Kueue, with what the server refuses of it. */
void kueue_info(struct kueue *k, FILE *out);
void kueue_refused(struct kueue *k, struct watches_refused *list);
