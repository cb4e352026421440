/* SPDX-License-Identifier: MIT */
/*
 * What kube_control.c (asking) and kube_command.c (what was asked for, and what came of it) share. Private to
 * them.
 */
#ifndef KXFS_BACKEND_KUBE_COMMAND_H
#define KXFS_BACKEND_KUBE_COMMAND_H

#include "backend/kube_request.h"
#include "spec/control.h"

struct control_drain;
struct kube_control;

/* What was asked for. Belongs to its job. */
struct kube_command {
	struct kube_job *job;
	enum spec_action action;
	char *phase; /* when it was sent; NULL: it is not sent yet */
	unsigned retries;
	bool taken;  /* by the server, or it may be: pending_command */
	bool unsure; /* it may be, and no reply said so */
	enum spec_control_outcome outcome;
	struct loop_timer *timer;   /* until it counts as ignored */
	struct kube_control *asker; /* NULL: answered */
};

/* Who asks, until that is answered. */
struct kube_control {
	struct kube_op op;
	struct kube_command *command;	     /* NULL: the job is gone */
	struct spec_control_request request; /* made when the job has been read first */
	char *lost; /* why a try may have been acted on, though no reply said so; NULL: none may */
	struct control_drain *drain;
	struct loop_timer *timer; /* the end of the drain, then of the waiting */
};

/* --- kube_command.c --- */

/* The job has none any more. */
void kube_command_drop(struct kube_command *cmd);
/* It may be obeyed from now on. 0 or -ENOMEM. */
int kube_command_taken(struct kube_command *cmd);

#endif
