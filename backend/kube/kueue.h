/* SPDX-License-Identifier: MIT */
/*
 * The version of Kueue that the cluster has. Also requests the positions of jobs in Kueue's queues
 * while a user reads them, because Kueue's visibility API can't be watched. The positions go into
 * the world. I/O thread, unless noted otherwise.
 */
#pragma once

#include "backend/kube/watches.h"

struct kueue;

struct kueue *kueue_new(const struct watches_access *access);
/* Find Kueue in GROUPS, the server's list of API groups. Ignore later versions of Kueue. */
void kueue_served(struct kueue *k, const char *groups, size_t len);
void kueue_stop(struct kueue *k);
void kueue_free(struct kueue *k); /* NULL is allowed */

/* Call this when a user reads positions. Never blocks. Any thread. */
void kueue_wanted(struct kueue *k);
/* Return Kueue's API ("kueue.x-k8s.io/v1beta2"), a static string, or NULL. Any thread. */
const char *kueue_version(struct kueue *k);
/* Print the keys of .kxfs/info about Kueue. Any thread. */
void kueue_info(struct kueue *k, FILE *out);
