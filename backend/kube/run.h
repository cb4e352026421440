/* SPDX-License-Identifier: MIT */
/*
 * The key of a log names one run of one container of one pod. These functions are pure: they find in the pod's view
 * whether that run has begun or ended, and how the rest of its output is available.
 */
#pragma once

#include "spec/view/view.h"

/*
 * How the rest of a run's output is available. RUN_GOES_ON: as the container's log; RUN_LAST: the same, and it has
 * ended; RUN_PREVIOUS: as the container's previous log, since the container runs again; RUN_GONE: not at all, since
 * the pod is gone, or more runs have followed. A run only moves forward.
 */
enum run_end { RUN_GOES_ON, RUN_LAST, RUN_PREVIOUS, RUN_GONE };

struct run {
	const struct spec_pod_view *pod;
	const struct spec_container_view *container;
	unsigned restart; /* runs of the container before this one */
};

/* Return the length of the pod's uid at the beginning of KEY. */
size_t run_pod_len(const char *key);
/* Find the run KEY in POD (may be NULL). False: the pod has no such container, or KEY is malformed. */
bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret);
bool run_has_begun(const struct run *run);
enum run_end run_end(const struct run *run);
/* True if the container was started in this run; one that could not be started has no output. */
bool run_was_started(const struct run *run);
/* Return how many runs of its container before log I of R were never seen. */
unsigned run_missed_before(const struct spec_replica *r, size_t i);
