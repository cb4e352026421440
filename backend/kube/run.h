/* SPDX-License-Identifier: MIT */
/*
 * What the key of a log means: one run of one container of one pod. The functions are pure: the pod's view says whether
 * that run has begun or ended, and how the rest of its output can be had.
 */
#pragma once

#include "spec/view/view.h"

/*
 * How far a run is, and so how the rest of its output can be had. RUN_GOES_ON: from the container's log; RUN_LAST: from
 * there too, but it has ended; RUN_PREVIOUS: as the container's previous log, since the container runs again; RUN_GONE:
 * not at all, since the pod is gone and another may have its name, or later runs have come. A run only goes forward.
 */
enum run_end { RUN_GOES_ON, RUN_LAST, RUN_PREVIOUS, RUN_GONE };

struct run {
	const struct spec_pod_view *pod;
	const struct spec_container_view *container;
	unsigned restart; /* runs of the container before this one */
};

/* The length of the pod's uid, with which KEY begins. */
size_t run_pod_len(const char *key);
/*
 * Find the run that KEY names in POD (NULL: the pod is gone). False: the pod has no such container, or KEY names none.
 */
bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret);
bool run_has_begun(const struct run *run);
enum run_end run_end(const struct run *run);
/* Was the container really started in this run? One that could not be started has printed nothing. */
bool run_was_started(const struct run *run);
/* How many runs of its container before log I of R have never been seen? */
unsigned run_missed_before(const struct spec_replica *r, size_t i);
