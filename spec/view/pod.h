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

/* The container whose output is the replica's; NULL: the server has not shown it yet. */
const struct spec_container_view *spec_pod_main(const struct spec_pod_view *pod);
/* Has its node gone silent, so that nobody knows whether it still runs? */
bool spec_pod_is_lost(const struct spec_pod_view *pod);
/* Has C failed, and will it be run again in the same pod? */
bool spec_pod_loops(const struct spec_pod_view *pod, const struct spec_container_view *c);
/* The state in the pod's own status, whatever became of its job: its phase, or what follows from its containers. */
enum spec_state spec_pod_state(const struct spec_pod_view *pod);
/* Does the phase of the pod say that it has ended? Its controller goes by that. */
bool spec_pod_is_settled(const struct spec_pod_view *pod);
/* Has the pod ended because somebody deleted it, and not by itself before that? */
bool spec_pod_was_stopped(const struct spec_pod_view *pod);
/* Does the pod belong to an attempt of JOB that is over? */
bool spec_pod_is_past(const struct spec_pod_view *pod, const struct spec_job_view *job);
/* The state that POD ended in by itself; -1: it has not, or was stopped. */
int spec_pod_end(const struct spec_pod_view *pod);
