/* SPDX-License-Identifier: MIT */
/*
 * The commands that users have written to ctl. kxfs keeps a command until the job shows the
 * outcome, or until the command counts as ignored. Then kxfs calls the command's callback once, if
 * the user's process still waits. A job has at most one command in progress. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/view/control.h"

struct commands;

enum command_end {
	COMMAND_OBEYED,
	COMMAND_LATE,	 /* the job is now in a phase in which it ignores the action */
	COMMAND_IGNORED, /* no outcome was seen within the time limit */
	COMMAND_GONE,	 /* the job is no longer in jobs/ */
};

/* Called once, when the command has ended. TEXT is NULL or has details for users. */
typedef void (*command_ended_fn)(void *data, enum command_end end, const char *text);

struct commands *commands_new(struct loop *loop);
/*
 * Set the callback CHANGED. Call this once, before any command begins. CHANGED(DATA, UID) is called
 * when the command of job UID changes its state. CHANGED must make sure that the job is published
 * again.
 */
void commands_set_changed(struct commands *cs, void (*changed)(void *data, const char *uid),
			  void *data);
/* Forget all commands without calling their callbacks. */
void commands_stop(struct commands *cs);
void commands_free(struct commands *cs); /* NULL is allowed */

/* --- for control.c --- */

/* Begin ACTION for the job with this UID and ID. Return -EBUSY if it has a command in progress. */
int commands_begin(struct commands *cs, const char *uid, const char *id, enum spec_action action,
		   command_ended_fn ended, void *data);
/*
 * Record that kxfs is sending the request. ARGUMENT is the argument of the command, or NULL. VIEW
 * is the state of the job before the command.
 */
void commands_sent(struct commands *cs, const char *uid, const struct spec_job_view *view,
		   const char *argument);
/* Record that the server has accepted the command, or (UNSURE) may have accepted it. */
void commands_taken(struct commands *cs, const char *uid, bool unsure);
/* Forget the command without calling its callback. Call this if it was refused or not sent. */
void commands_drop(struct commands *cs, const char *uid);
/* Drop the callback of the command, because the user's process no longer waits. */
void commands_detach(struct commands *cs, const char *uid);

/* --- for publish.c --- */

/*
 * If JOB shows the outcome of the command of job UID, record the outcome and return true. Otherwise
 * return false. JOB is the version of the job that will be published next.
 */
bool commands_check(struct commands *cs, const char *uid, const struct spec_control *control,
		    const struct spec_control_job *job);
/* Return the values that spec_job.pending and spec_job.ignored must have for job UID. */
unsigned commands_pending(const struct commands *cs, const char *uid);
unsigned commands_ignored(const struct commands *cs, const char *uid);
/*
 * Call this when the store has a new snapshot of job UID. PHASE is the phase in this snapshot. If
 * the snapshot shows the outcome of the job's command, end the command.
 */
void commands_shown(struct commands *cs, const char *uid, const char *phase);
/* Call this when the job is no longer in jobs/. End the job's command. */
void commands_gone(struct commands *cs, const char *uid);
