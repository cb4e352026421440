/* SPDX-License-Identifier: MIT */
/*
 * What the key of a log means: one run of one container of one pod. Pure: the pod's view says whether that run has
 * begun or ended, and how the rest of what it printed can be had.
 */
#pragma once

#include "spec/view/view.h"

/*
 * How far a run is, and so how what is left of its output can be had: as before; as the container's previous log, since
 * it runs again; not at all, since the pod is gone and another may have its name, or later runs have come. It only goes
 * forward.
 */
enum run_end { RUN_GOES_ON, RUN_LAST, RUN_PREVIOUS, RUN_GONE };

struct run {
	const struct spec_pod_view *pod;
	const struct spec_container_view *container;
	unsigned restart; /* runs of the container before this one */
};

/* The length of the pod's uid, with which KEY begins. */
size_t run_pod_len(const char *key);
/* The run that KEY names, of POD (NULL: it is gone). False: the pod has no such container, or KEY names none. */
bool run_find(const struct spec_pod_view *pod, const char *key, struct run *ret);
bool run_has_begun(const struct run *run);
enum run_end run_end(const struct run *run);
/* Has the container, in this run, really been started? One that could not be has printed nothing. */
bool run_was_started(const struct run *run);
/* Of how many runs of its container before log I of R nothing is known, since none of them was ever seen? */
unsigned run_missed_before(const struct spec_replica *r, size_t i);
