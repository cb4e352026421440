/* SPDX-License-Identifier: MIT */
/*
 * Publishes each job that has changed in the world, once, in the next turn of the loop: its pending command is
 * checked; capture learns which of its logs have begun or ended; its new snapshot goes into the store, and onto the
 * disk if the job has a folder. When nothing of the job remains, all parts forget it. Only this file knows all of
 * these parts. I/O thread only.
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
	const char *
		user; /* value of SPEC_LABEL_USER of this mount's user; borrowed; NULL if unknown */
	const char *state_dir; /* borrowed */
	struct group *group;   /* entered while something is under way */
	enum backend_capture mode;
	/* Whether a job of jobs/ runs (ANY), and one whose output is captured (CAPTURED), has changed. */
	void (*running)(void *data, bool any, bool captured);
	void *data;
};

/* WORLD, FOLDERS, CAPTURE and COMMANDS report their events to publish from then on. */
struct publish *publish_new(const struct publish_config *config);
/*
 * The first lists are in: publish all jobs. Jobs of an earlier mount that the cluster no longer has become history.
 */
void publish_begin(struct publish *p);
/* Publish nothing any more. */
void publish_stop(struct publish *p);
void publish_free(struct publish *p); /* NULL is allowed */

/* True if the snapshot of job UID is up to date. */
bool publish_has_shown(const struct publish *p, const char *uid);
/* Queue job UID, since something in its snapshot has changed. */
void publish_again(void *publish, const char *uid);
/*
 * There is a new sample of a pod of JOB: queue it, like publish_again; but a snapshot with no other change is saved at
 * most once a minute.
 */
void publish_sampled(void *publish, const struct world_job *job);
/* Since SINCE (ns) the jobs of SORT (WORLD_N_SORTS: all jobs) are not confirmed; 0: they are. */
void publish_set_stale(struct publish *p, enum world_sort sort, int64_t since);
/*
 * The first list of a kind, or of the pods of another kind, has arrived after publish_begin: settle the jobs of an
 * earlier mount, and publish those that wait for their pods.
 */
void publish_listed(struct publish *p);

/* True if everything is listed and confirmed. */
bool publish_is_whole(const struct publish *p);

/* Publish JOB now, not in the next turn, before a request is answered. */
void publish_now(struct publish *p, const struct world_job *job);
/* Move job UID out of jobs/ now: to history/ if there is output of it. */
void publish_leave(struct publish *p, const char *uid);
/*
 * True if publish_leave has moved a job of SORT out of jobs/, and the watch has not reported yet
 * that it is gone or being deleted.
 */
bool publish_has_unreported(const struct publish *p, enum world_sort sort);
