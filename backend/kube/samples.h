/* SPDX-License-Identifier: MIT */
/*
 * Requests samples of the CPU and memory that pods use, from metrics.k8s.io, and puts them into the
 * world. kxfs requests samples only while a job runs. In addition, a user must have read samples in
 * the last minutes, or the output of a running job must be captured. I/O thread, unless noted
 * otherwise.
 */
#pragma once

#include "backend/kube/watches.h"

struct samples;

struct samples *samples_new(const struct watches_access *access, struct publish *publish);
/* Find metrics.k8s.io in GROUPS, the server's list of API groups. */
void samples_served(struct samples *l, const char *groups, size_t len);
void samples_stop(struct samples *l);
void samples_free(struct samples *l); /* NULL is allowed */

/* Call this when a user reads the samples. Never blocks. Any thread. */
void samples_wanted(struct samples *l);
/* Print the keys of .kxfs/info about the samples. Any thread. */
void samples_info(struct samples *l, FILE *out);
