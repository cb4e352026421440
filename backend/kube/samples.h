/* SPDX-License-Identifier: MIT */
/*
 * Requests samples of the CPU and memory that pods use, from metrics.k8s.io. kxfs lists the samples
 * of the namespace every 15 s in two cases: a job runs and a user has read samples in the last
 * minutes; or the output of a running job is captured, and the job's saved snapshot keeps the
 * samples. If the server does not return samples (no metrics-server, or no right), kxfs retries
 * after ten minutes. The samples go into the world, and from there into the snapshots. I/O thread,
 * unless noted otherwise.
 */
#pragma once

#include "backend/kube/watches.h"

struct samples;

/* Called when a pod of JOB has a new sample. */
typedef void (*samples_fn)(void *data, const struct world_job *job);

struct samples *samples_new(const struct watches_access *access, samples_fn sampled, void *data);
/* Record whether any job runs, and whether the output of any running job is captured. */
void samples_set_running(struct samples *l, bool any, bool captured);
void samples_stop(struct samples *l);
void samples_free(struct samples *l); /* NULL is allowed */

/* Call this when a user reads the samples. Never blocks. Any thread. */
void samples_wanted(struct samples *l);
/* Print the keys of .kxfs/info about the samples. Any thread. */
void samples_info(struct samples *l, FILE *out);
