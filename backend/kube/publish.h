/* SPDX-License-Identifier: MIT */
/*
 * Takes each job from the world to what users see. When anything about a job has changed, publish looks at it once, in
 * the loop's next turn: its command is checked for an outcome; capture learns which of its logs have begun or ended;
 * its new snapshot goes into the store, and onto the disk if the job has a folder. When nothing of the job is left, all
 * parts forget it. Only this file knows all of these parts. I/O thread only.
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
	const char *user;      /* value of SPEC_LABEL_USER: who mounts; borrowed; NULL: not known */
	const char *state_dir; /* borrowed */
	struct group *group;   /* whatever the end of the mount has to wait for enters it */
	enum backend_capture mode;
	/*
	 * Does a job of jobs/ run now (ANY), and does one run whose output is captured (CAPTURED)? Called when that has
	 * changed.
	 */
	void (*running)(void *data, bool any, bool captured);
	/* See backend_events.launched. */
	void (*launched)(void *data, const char *file, const char *id, const char *submission);
	void *data;
};

/* From then on WORLD, FOLDERS, CAPTURE and COMMANDS tell publish what has happened. */
struct publish *publish_new(const struct publish_config *config);
/*
 * The first lists are in: show all jobs. Jobs that an earlier mount knew and the cluster no longer has become history,
 * and launched() tells what has become of each submission whose outcome an earlier mount may not have told.
 */
void publish_begin(struct publish *p);
/* Nothing is shown any more. */
void publish_stop(struct publish *p);
void publish_free(struct publish *p); /* NULL is allowed */

/* Does the snapshot of job UID have all that is known of it? */
bool publish_has_shown(const struct publish *p, const char *uid);
/* Something that is shown of job UID has changed: show it again. This only queues it. */
void publish_again(void *publish, const char *uid);
/*
 * There is a new look at a pod of JOB: show JOB again, like publish_again; but a snapshot in which nothing else has
 * changed is written to disk at most once a minute.
 */
void publish_looked(void *publish, const struct world_job *job);
/* Since SINCE (ns) the server has not confirmed what is shown; 0: it confirms it. */
void publish_set_stale(void *publish, int64_t since);
/* Like publish_set_stale, for the jobs of SORT alone, in a mount of several kinds. */
void publish_set_stale_kind(void *publish, enum world_sort sort, int64_t since);
/*
 * The first list of a kind, or that of the pods of another kind, has come after publish_begin: settle what an earlier
 * mount knew of its jobs, and show those that wait for their pods.
 */
void publish_listed(void *publish);

/* Has everything been listed, and is that confirmed? */
bool publish_is_whole(const struct publish *p);

/* Show JOB now, not in the next turn: somebody is about to be answered. */
void publish_now(struct publish *p, const struct world_job *job);
/* Take job UID out of jobs/ now: into the history if there is output of it, else for good. */
void publish_leave(struct publish *p, const char *uid);
/* Has a job of SORT left jobs/ so, and the cluster has not told that it is gone, or is being deleted? */
bool publish_has_untold(void *publish, enum world_sort sort);
