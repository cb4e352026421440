/* SPDX-License-Identifier: MIT */
/*
 * The commands that users have written to ctl. kxfs keeps a command until the job shows the
 * outcome, or until the command counts as ignored. A job has at most one command in progress. I/O
 * thread only.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/view/control.h"

struct commands;

enum command_end {
	COMMAND_OBEYED,
	COMMAND_LATE,	 /* the job first entered a phase in which it ignores the action */
	COMMAND_IGNORED, /* the job has shown no outcome within the time limit */
	COMMAND_GONE,	 /* the job is no longer in jobs/ */
};

/* Called once, when the command has ended. TEXT is for users, or NULL. */
typedef void (*command_ended_fn)(void *data, enum command_end end, const char *text);

struct commands *commands_new(struct loop *loop);
/*
 * Call this once, before any command begins. CHANGED(DATA, UID) is called when the command of job
 * UID changes its state. CHANGED must queue the job to be published again.
 */
void commands_set_changed(struct commands *cs, void (*changed)(void *data, const char *uid),
			  void *data);
/* Forget all commands without calling their callbacks. */
void commands_stop(struct commands *cs);
void commands_free(struct commands *cs); /* NULL is allowed */

/* --- functions that control.c calls --- */

/* Begin ACTION for job UID. Return 0, or -EBUSY if the job has a command in progress. */
int commands_begin(struct commands *cs, const char *uid, const char *id, enum spec_action action,
		   command_ended_fn ended, void *data);
/*
 * Record that kxfs is sending the request. VIEW is the state of the job before the command.
 * ARGUMENT is the command's argument, or NULL.
 */
void commands_sent(struct commands *cs, const char *uid, const struct spec_job_view *view,
		   const char *argument);
/* Record that the server has accepted the command, or (UNSURE) may have accepted it. */
void commands_taken(struct commands *cs, const char *uid, bool unsure);
/*
 * Drop the callback of the command, because the user's process no longer waits. If the server has
 * not accepted the command, and the job shows no outcome, forget the command.
 */
void commands_leave(struct commands *cs, const char *uid);

/* --- functions that publish.c calls --- */

/*
 * If JOB, which will be published next, shows the outcome of its command, record the outcome and
 * return true.
 */
bool commands_check(struct commands *cs, const char *uid, const struct spec_control *control,
		    const struct spec_control_job *job);
/* Return the values that spec_job.pending and spec_job.ignored must have for job UID. */
unsigned commands_pending(const struct commands *cs, const char *uid);
unsigned commands_ignored(const struct commands *cs, const char *uid);
/*
 * End the command of job UID if commands_check has recorded its outcome. Call this when the store
 * has a new snapshot of the job. PHASE is the phase in this snapshot.
 */
void commands_shown(struct commands *cs, const char *uid, const char *phase);
/* End the command of a job that is no longer in jobs/. */
void commands_gone(struct commands *cs, const char *uid);
