/* SPDX-License-Identifier: MIT */
/* The state of a pod by itself, and the pods of a job in the order of its replicas. Private to spec/view. */
#pragma once

#include "spec/view/view.h"

/* A pod of a job, and the index of its replica. Plain data. */
struct spec_placed_pod {
	size_t replica;
	const struct spec_pod_view *pod;
};

/* Pods of a job, or of one of its replicas: ordered by replica, those of one replica oldest first. Plain data. */
struct spec_placed_pods {
	const struct spec_placed_pod *v;
	size_t n;
};

/*
 * Return the container whose output is the replica's; NULL if the server has not reported it yet.
 */
const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod);
/* True if its node does not respond, so that it is not known whether it still runs. */
bool spec_pod_is_lost(const struct spec_pod_view *pod);
/* True if C has failed, and will be restarted in the same pod. */
bool spec_pod_loops(const struct spec_pod_view *pod, const struct spec_container_view *c);
/*
 * Return the state in the pod's own status, independent of its job: its phase, or the state that
 * follows from its containers.
 */
enum spec_state spec_pod_state(const struct spec_pod_view *pod);
/* True if the pod has ended according to its phase, which its controller uses. */
bool spec_pod_is_settled(const struct spec_pod_view *pod);
/* True if the pod has ended because it was deleted, and not by itself before that. */
bool spec_pod_was_stopped(const struct spec_pod_view *pod);
/* True if the pod belongs to an attempt of JOB that is over. */
bool spec_pod_is_past(const struct spec_pod_view *pod, const struct spec_job_view *job);
/* Return the state that POD ended in by itself; -1 if it has not, or was stopped. */
int spec_pod_end(const struct spec_pod_view *pod);
