/* SPDX-License-Identifier: MIT */
/*
 * From the world to what users see: when something of a job has changed, the job is reconciled once, in the loop's
 * next turn. Its command is checked for an outcome; capture learns which of its logs have begun or ended; its new
 * snapshot goes into the store, and onto the disk if the job has a folder. When nothing of the job is left, all parts
 * forget it. This is the only place that knows all of these parts. I/O thread only.
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
	const char *user; /* value of SPEC_LABEL_USER, of who mounts; borrowed; NULL: not known */
	const char *state_dir; /* borrowed */
	struct group *group;   /* entered by whatever the end of the mount waits for */
	enum backend_capture mode;
	/* A job of jobs/ runs now (ANY), and one whose output is captured (CAPTURED), or not any more. */
	void (*running)(void *data, bool any, bool captured);
	/* As backend_events.launched. */
	void (*launched)(void *data, const char *file, const char *id, const char *submission);
	void *data;
};

/* From then on WORLD, FOLDERS, CAPTURE and COMMANDS tell it what has happened. */
struct publish *publish_new(const struct publish_config *config);
/*
 * The first lists are in: show all jobs. What an earlier mount knew and the cluster no longer has becomes history, and
 * launched() tells what has become of each submission of which an earlier mount may not have told.
 */
void publish_begin(struct publish *p);
/* Nothing is shown any more. */
void publish_stop(struct publish *p);
void publish_free(struct publish *p); /* NULL is allowed */

/* Is all that is known of job UID in its snapshot? */
bool publish_has_shown(const struct publish *p, const char *uid);
/* Something that is shown of job UID has changed. It is only put into the queue. */
void publish_again(struct publish *p, const char *uid);
/*
 * What a pod of JOB uses was looked at. Like publish_again, but a snapshot in which nothing else has changed is written
 * to disk at most once a minute.
 */
void publish_looked(struct publish *p, const struct world_job *job);
/* The server has not confirmed since SINCE (ns) what is shown; 0: it has. */
void publish_set_stale(struct publish *p, int64_t since);

/* The same of the jobs of SORT alone, where there are several kinds. */
void publish_set_stale_kind(struct publish *p, enum world_sort sort, int64_t since);
/* The first list of a kind has come after publish_begin: what an earlier mount knew of its jobs is settled. */
void publish_listed(struct publish *p);

/* Has all been listed that there is, and is that confirmed? */
bool publish_is_whole(const struct publish *p);
/* There is a folder in doubt now (folders_doubt): it is removed when there is no job of it in time. */
void publish_doubt(struct publish *p);

/* Show JOB now, before anybody is answered. */
void publish_now(struct publish *p, const struct world_job *job);
/* Job UID leaves jobs/ now: for the history if there is output of it, else for good. */
void publish_leave(struct publish *p, const char *uid);
