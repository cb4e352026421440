/* SPDX-License-Identifier: MIT */
/*
 * Publishes each job that has changed in the world, once per round of the loop. This object checks
 * the outcome of the job's command, notifies capture, puts the new snapshot into the store, and
 * saves it if the job has files. When no module needs the job any more, it makes all modules forget
 * the job. I/O thread only.
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
	/*
	 * Called when ANY or CAPTURED changes. ANY is true if a job in jobs/ runs. CAPTURED is true
	 * if kxfs captures the output of such a job.
	 */
	void (*running)(void *data, bool any, bool captured);
	void *data;
};

/* WORLD, FOLDERS, CAPTURE and COMMANDS report their events to the new object. */
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
/* Publish job UID again soon, because its snapshot would be different now. */
void publish_again(void *publish, const char *uid);
/*
 * Publish JOB again soon, because its usage has changed. If nothing else has changed, save the
 * snapshot at most once a minute.
 */
void publish_sampled(void *publish, const struct world_job *job);
/*
 * Record since when the jobs of TYPE are not confirmed, in ns, or that they are confirmed (SINCE is
 * 0). WORLD_N_TYPES means all jobs.
 */
void publish_set_stale(struct publish *p, enum world_type type, int64_t since);
/*
 * Call this when the first list of a kind, or of its pods, has arrived after publish_begin. Publish
 * the jobs that wait for their pods, and settle the jobs of an earlier mount.
 */
void publish_listed(struct publish *p);

/*
 * True if the first list of JOB's kind has not arrived, or if the user may not list this kind. If
 * JOB is NULL, true if this applies to any kind.
 */
bool publish_is_unlisted(const struct publish *p, const struct spec_job *job);
/* True if all jobs and pods are listed and confirmed, and the store has all jobs. */
bool publish_is_whole(const struct publish *p);

/* Publish JOB immediately, so that its snapshot is in the store before a request is answered. */
void publish_now(struct publish *p, const struct world_job *job);
/* Remove job UID from jobs/ immediately, and move it to history/ if it has output. */
void publish_leave(struct publish *p, const char *uid);
