/* SPDX-License-Identifier: MIT */
/*
 * What happens to jobs and pods of the cluster of kube_rig.h, and how many logs of the job "one" are followed, wait,
 * or have lost something.
 */
#pragma once

#include "tests/unit/backend/kube/kube_rig.h"

static inline void story_pod(const char *type, const char *uid, const char *owner, unsigned index,
			     const char *phase, const char *state)
{
	cleanup_free char *json = rig_pod(uid, owner, index, phase, state);

	rig_pod_event(type, json);
}

static inline void story_job(const char *type, const char *name, const char *uid, const char *phase)
{
	cleanup_free char *json = rig_job(name, uid, phase, 2);

	rig_job_event(type, json);
}

/* Somebody else's job begins to run, and it is captured, and prints. */
static inline void story_run(const char *name, const char *uid, const char *pod)
{
	story_job("ADDED", name, uid, "Running");
	story_pod("ADDED", pod, uid, 0, "Running", RIG_RUNNING);
}

/* Begin a mount that captures all, with such a job, "one", which runs. */
static inline void story_begin(void)
{
	rig.capture = BACKEND_CAPTURE_ALL;
	rig_start("", "");
	story_run("one", "u1", "p1");
}

static inline void story_end(const char *name, const char *uid, const char *pod)
{
	story_job("DELETED", name, uid, "Running");
	story_pod("DELETED", pod, uid, 0, "Running", RIG_RUNNING);
	while (rig.streams)
		rig_stream_done(rig.streams);
	fake_pass(5000);
}

/* A pod that runs, with FROM in its JSON replaced by TO. */
static inline void story_odd_pod(const char *type, const char *uid, const char *from,
				 const char *to)
{
	cleanup_free char *json = rig_pod(uid, "u1", 0, "Running", RIG_RUNNING), *odd = NULL;
	char text[2048];
	const char *at;

	assert_true(strlen(json) < sizeof(text));
	memcpy(text, json, strlen(json) + 1);
	at = strstr(text, from);
	assert_non_null(at);
	assert_true(asprintf(&odd, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	rig_pod_event(type, odd);
}

static inline size_t story_follows(void)
{
	struct podlog *f;
	size_t n;

	DL_COUNT(rig.streams, f, n);
	return n;
}

/* How many of the logs of "one" wait for their turn, as its status says. */
static inline size_t story_waiting(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	size_t n = 0;

	for (size_t i = 0; i < job->n_replicas; i++)
		for (size_t j = 0; j < job->replicas[i].n_logs; j++)
			n += job->replicas[i].logs[j].waiting;
	return n;
}

/* The gaps of the first replica of "one", as its status says. */
static inline uint64_t story_gaps(void)
{
	const struct spec_job *job cleanup_job = backend_job(rig.b, BACKEND_JOBS, "one");
	uint64_t n = 0;

	if (!job)
		job = backend_job(rig.b, BACKEND_HISTORY, "one");
	assert_non_null(job);
	for (size_t j = 0; j < job->replicas[0].n_logs; j++)
		n += job->replicas[0].logs[j].gap;
	return n;
}
