/* SPDX-License-Identifier: MIT */
/*
 * Publishes each job that has changed in the world, but at most once in a round of the loop. To
 * publish a job, this object checks the outcome of the job's command, notifies capture, and puts
 * the new snapshot into the store. If the job has files, it also saves the snapshot on disk. When
 * no module needs a job any more, this object makes all modules forget it. I/O thread only.
 */
#pragma once

#include "backend/backend.h"
#include "backend/kube/capture.h"
#include "backend/kube/commands.h"
#include "backend/kube/folders.h"
#include "backend/kube/world.h"

struct publish;

struct publish_config {
	struct loop *loop;
	struct store *store;
	struct world *world;
	struct folders *folders;
	struct capture *capture;
	struct commands *commands;
	const char *namespace; /* borrowed */
	const char *user;      /* SPEC_LABEL_USER of this user's objects; borrowed; or NULL */
	const char *state_dir; /* borrowed */
	struct group *group;   /* entered while an operation is in progress */
	enum backend_capture mode;
};

/* The world, folders, capture and commands of CONFIG report their events to the new object. */
struct publish *publish_new(const struct publish_config *config);
/*
 * Publish all jobs. Settle the jobs of an earlier mount: those that the cluster no longer has move
 * to history/, or are removed. Call this when the first lists have arrived.
 */
void publish_begin(struct publish *p);
void publish_stop(struct publish *p);
void publish_free(struct publish *p); /* NULL is allowed */

/* True if the snapshot of job UID is up to date. */
bool publish_has_shown(const struct publish *p, const char *uid);
/* Publish job UID again soon. Call this when a new snapshot of the job would be different. */
void publish_again(void *publish, const char *uid);
/*
 * Publish JOB again soon. Call this when its resource usage has changed. If only the usage has
 * changed, kxfs saves the snapshot at most once a minute.
 */
void publish_sampled(struct publish *p, const struct world_job *job);
/*
 * Record whether the jobs of TYPE are confirmed. SINCE is 0 if they are. Otherwise it is the time
 * in ns since when they are not. If TYPE is WORLD_N_TYPES, this is about all jobs.
 */
void publish_set_stale(struct publish *p, enum world_type type, int64_t since);
/*
 * Call this when the first list of a kind, or of its pods, has arrived after publish_begin. Publish
 * the jobs that wait for their pods, and settle the jobs of an earlier mount.
 */
void publish_listed(struct publish *p);

/* True if a job in jobs/ runs. If CAPTURED, consider only jobs whose output kxfs captures. */
bool publish_runs(const struct publish *p, bool captured);
/*
 * True if the first list of JOB's kind has not arrived, or if the user has no right to list this
 * kind. If JOB is NULL, return true if any kind is in this state.
 */
bool publish_is_unlisted(const struct publish *p, const struct spec_job *job);
/* True if all jobs and pods are listed and confirmed, and the store has all jobs. */
bool publish_is_whole(const struct publish *p);

/* Publish JOB immediately, so that its snapshot is in the store before a request is answered. */
void publish_now(struct publish *p, const struct world_job *job);
/* Remove job UID from jobs/ immediately, and move it to history/ if it has output. */
void publish_leave(struct publish *p, const char *uid);
