/* SPDX-License-Identifier: MIT */
/*
 * This object publishes each job that has changed in the world, once per round of the loop. It
 * checks whether the new state of the job shows the outcome of the job's command. It notifies
 * capture of the logs that have begun or ended. It puts the new snapshot into the store, and saves
 * the snapshot if the job has files in the state directory. When no module needs the job any more,
 * it makes all modules forget the job. No other file uses all of these modules. I/O thread only.
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
	/* the value of SPEC_LABEL_USER on the objects of this user; borrowed; NULL if unknown */
	const char *user;
	const char *state_dir; /* borrowed */
	struct group *group;   /* entered while an operation is in progress */
	enum backend_capture mode;
	/*
	 * Called when ANY or CAPTURED has changed. ANY is true if a job in jobs/ is running.
	 * CAPTURED is true if the output of a running job is captured.
	 */
	void (*running)(void *data, bool any, bool captured);
	void *data;
};

/*
 * Create the object. From now on, WORLD, FOLDERS, CAPTURE and COMMANDS report their events to this
 * object.
 */
struct publish *publish_new(const struct publish_config *config);
/*
 * Call this when the first lists have arrived. Publish all jobs. If a job of an earlier mount is no
 * longer in the cluster, move it to history/.
 */
void publish_begin(struct publish *p);
void publish_stop(struct publish *p);
void publish_free(struct publish *p); /* NULL is allowed */

/* True if the snapshot of job UID is up to date. */
bool publish_has_shown(const struct publish *p, const char *uid);
/* Queue job UID to be published again, because its snapshot would be different now. */
void publish_again(void *publish, const char *uid);
/*
 * Queue JOB to be published again, because one of its pods has a new sample. If nothing else has
 * changed, kxfs saves the snapshot at most once a minute.
 */
void publish_sampled(void *publish, const struct world_job *job);
/*
 * Record that the jobs of TYPE have not been confirmed since SINCE (in ns). If SINCE is 0, record
 * that these jobs are confirmed. If TYPE is WORLD_N_TYPES, do this for all jobs.
 */
void publish_set_stale(struct publish *p, enum world_type type, int64_t since);
/*
 * Call this when the first list of a kind, or of the pods of a kind, has arrived after
 * publish_begin. Publish the jobs that wait for their pods, and settle the jobs of an earlier
 * mount.
 */
void publish_listed(struct publish *p);

/* True if all jobs and pods are listed and confirmed. */
bool publish_is_whole(const struct publish *p);

/* Publish JOB immediately, so that its snapshot is in the store before a request is answered. */
void publish_now(struct publish *p, const struct world_job *job);
/* Remove job UID from jobs/ immediately, and move it to history/ if it has output. */
void publish_leave(struct publish *p, const char *uid);
/*
 * True if publish_leave has taken a job of TYPE out of jobs/, but the watch has not yet reported
 * that the job is deleted or being deleted.
 */
bool publish_has_unreported(const struct publish *p, enum world_type type);
