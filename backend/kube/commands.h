/* SPDX-License-Identifier: MIT */
/*
 * What users asked for through ctl: a command of a job is remembered until its outcome shows in the job, or until that
 * has not come for so long that the command counts as ignored. Whoever asked hears of the outcome once, unless they
 * have gone before. At most one command of a job is under way. I/O thread only.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/view/control.h"

struct commands;

enum command_end {
	COMMAND_OBEYED,
	COMMAND_LATE,	 /* the job has come to a phase in which the action is ignored */
	COMMAND_IGNORED, /* no outcome has shown */
	COMMAND_GONE,	 /* the job has left jobs/ */
};

/* The command is over. Called once. TEXT says more, for people; NULL: there is nothing more to say. */
typedef void (*command_ended_fn)(void *data, enum command_end end, const char *text);

struct commands *commands_new(struct loop *loop);
/*
 * To be called once, before any command begins. CHANGED(DATA, uid) is called when job UID's command is to be shown
 * otherwise than before.
 */
void commands_set_changed(struct commands *cs, void (*changed)(void *data, const char *uid),
			  void *data);
/* Forget all commands, and call nobody any more. */
void commands_stop(struct commands *cs);
void commands_free(struct commands *cs); /* NULL is allowed */

/* --- for the one who asks --- */

/* A user asks for ACTION of job UID, called ID. -EBUSY: another command of the job is under way. */
int commands_begin(struct commands *cs, const char *uid, const char *id, enum spec_action action,
		   command_ended_fn ended, void *data);
/* The request is about to be sent, with ARGUMENT (NULL: it has none), and the job is as VIEW says. */
void commands_sent(struct commands *cs, const char *uid, const struct spec_job_view *view,
		   const char *argument);
/*
 * The server has taken the command, so the controller may obey it. UNSURE: perhaps it has not, since no reply said so.
 */
void commands_taken(struct commands *cs, const char *uid, bool unsure);
/* The server refused the command, or nothing was sent: forget it, and call nobody. */
void commands_drop(struct commands *cs, const char *uid);
/* Whoever asked has gone, and is not called any more. */
void commands_detach(struct commands *cs, const char *uid);

/* --- for the one who shows the job --- */

/* JOB is about to be shown. True: it shows the outcome of the command. */
bool commands_check(struct commands *cs, const char *uid, const struct spec_control *control,
		    const struct spec_control_job *job);
/* The values of spec_job.pending and spec_job.ignored. */
unsigned commands_pending(const struct commands *cs, const char *uid);
unsigned commands_ignored(const struct commands *cs, const char *uid);
/* The job is shown in PHASE: if that is the outcome of its command, the asker is called. */
void commands_shown(struct commands *cs, const char *uid, const char *phase);
/* The job has left jobs/: its asker is called, and its command is forgotten. */
void commands_gone(struct commands *cs, const char *uid);
