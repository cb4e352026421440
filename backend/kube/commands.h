/* SPDX-License-Identifier: MIT */
/*
 * The commands written to ctl. A command is kept until its outcome shows in the job, or until it counts as ignored;
 * then its writer is called once, if it still waits. A job has at most one command under way. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/view/control.h"

struct commands;

enum command_end {
	COMMAND_OBEYED,
	COMMAND_LATE,	 /* the job has reached a phase in which the action is ignored */
	COMMAND_IGNORED, /* no outcome was seen */
	COMMAND_GONE,	 /* the job has left jobs/ */
};

/* The command is over. Called once. TEXT: details for people, or NULL. */
typedef void (*command_ended_fn)(void *data, enum command_end end, const char *text);

struct commands *commands_new(struct loop *loop);
/* Call this once, before any command begins. CHANGED: the command of job UID has to be published. */
void commands_set_changed(struct commands *cs, void (*changed)(void *data, const char *uid),
			  void *data);
/* Forget all commands, without calls. */
void commands_stop(struct commands *cs);
void commands_free(struct commands *cs); /* NULL is allowed */

/* --- for control.c --- */

/* Begin ACTION of job UID, with the id ID. Return 0, or -EBUSY if another command of the job is under way. */
int commands_begin(struct commands *cs, const char *uid, const char *id, enum spec_action action,
		   command_ended_fn ended, void *data);
/* The request is sent now, with ARGUMENT (or NULL); VIEW is the job before it. */
void commands_sent(struct commands *cs, const char *uid, const struct spec_job_view *view,
		   const char *argument);
/* The server has accepted the command, or (UNSURE) may have. */
void commands_taken(struct commands *cs, const char *uid, bool unsure);
/* The server refused the command, or nothing was sent: forget it, without a call. */
void commands_drop(struct commands *cs, const char *uid);
/* Nobody waits any more. */
void commands_detach(struct commands *cs, const char *uid);

/* --- for publish.c --- */

/* JOB will be published. True if it shows the outcome of the command. */
bool commands_check(struct commands *cs, const char *uid, const struct spec_control *control,
		    const struct spec_control_job *job);
/* Return spec_job.pending; spec_job.ignored. */
unsigned commands_pending(const struct commands *cs, const char *uid);
unsigned commands_ignored(const struct commands *cs, const char *uid);
/* The job was published in PHASE: if its command is DONE, end it. */
void commands_shown(struct commands *cs, const char *uid, const char *phase);
/* The job has left jobs/: end its command. */
void commands_gone(struct commands *cs, const char *uid);
