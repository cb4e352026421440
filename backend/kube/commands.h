/* SPDX-License-Identifier: MIT */
/*
 * The commands that users have written to ctl. A command is kept until the job shows the outcome, or until the
 * command counts as ignored. Then the command's callback is called once, if the writer still waits. A job has at
 * most one command in progress. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/view/control.h"

struct commands;

enum command_end {
	COMMAND_OBEYED,
	COMMAND_LATE,	 /* the job has reached a phase in which it ignores the action */
	COMMAND_IGNORED, /* the job has not shown an outcome in time */
	COMMAND_GONE,	 /* the job is no longer in jobs/ */
};

/* Called once, when the command has ended as END. TEXT: details for users, or NULL. */
typedef void (*command_ended_fn)(void *data, enum command_end end, const char *text);

struct commands *commands_new(struct loop *loop);
/*
 * Call this once, before any command begins. CHANGED is called when the command of job UID changes its state, and
 * must publish the job's snapshot again.
 */
void commands_set_changed(struct commands *cs, void (*changed)(void *data, const char *uid),
			  void *data);
/* Forget all commands without calling their callbacks. */
void commands_stop(struct commands *cs);
void commands_free(struct commands *cs); /* NULL is allowed */

/* --- for control.c --- */

/* Begin ACTION of job UID, whose id is ID. Return 0, or -EBUSY if another command of the job is in progress. */
int commands_begin(struct commands *cs, const char *uid, const char *id, enum spec_action action,
		   command_ended_fn ended, void *data);
/* Note that the request is being sent, with ARGUMENT (or NULL). VIEW is the job before the command. */
void commands_sent(struct commands *cs, const char *uid, const struct spec_job_view *view,
		   const char *argument);
/* Note that the server has accepted the command or, if UNSURE, may have accepted it. */
void commands_taken(struct commands *cs, const char *uid, bool unsure);
/* Forget the command without calling its callback. The server has refused the command, or no request was sent. */
void commands_drop(struct commands *cs, const char *uid);
/* The writer no longer waits: do not call the callback. */
void commands_detach(struct commands *cs, const char *uid);

/* --- for publish.c --- */

/* Compare JOB, the version of job UID that will be published, with the command. True if JOB shows the outcome. */
bool commands_check(struct commands *cs, const char *uid, const struct spec_control *control,
		    const struct spec_control_job *job);
/* Return the values that spec_job.pending and spec_job.ignored must have for job UID. */
unsigned commands_pending(const struct commands *cs, const char *uid);
unsigned commands_ignored(const struct commands *cs, const char *uid);
/*
 * The snapshot of job UID, in PHASE, is in the store now. If that snapshot shows the command's outcome, end the
 * command.
 */
void commands_shown(struct commands *cs, const char *uid, const char *phase);
/* The job is no longer in jobs/: end its command. */
void commands_gone(struct commands *cs, const char *uid);
