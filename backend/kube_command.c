/* SPDX-License-Identifier: MIT */
/*
 * What was asked for by ctl, remembered until it shows in the job, or until nothing has come of it for so long
 * that it counts as ignored. Who asked is answered when it shows; it may have been answered long before.
 */
#include <errno.h>

#include "backend/kube_command.h"

#define IGNORED_MS 30000

void kube_command_drop(struct kube_command *cmd)
{
	cmd->job->command = NULL;
	if (cmd->asker)
		cmd->asker->command = NULL;
	loop_timer_free(cmd->timer);
	free(cmd->phase);
	free(cmd);
}

static void on_ignored(void *data)
{
	struct kube_command *cmd = data;
	struct kube_job *job = cmd->job;

	diag(DIAG_WARNING, "%s: %s %s %d s ago, but nothing has come of it: it was ignored%s",
	     job->view ? job->view->meta.name : job->uid, spec_action_name(cmd->action),
	     cmd->unsure ? "may have been taken" : "was taken", IGNORED_MS / 1000,
	     cmd->unsure ? ", or never came" : "");
	job->ignored = 1u << cmd->action;
	kube_command_drop(cmd);
	kube_mark(job);
}

int kube_command_taken(struct kube_command *cmd)
{
	if (!cmd->timer)
		cmd->timer = loop_timer_new(cmd->job->k->b->loop, IGNORED_MS, 0, on_ignored, cmd);
	if (!cmd->timer)
		return -ENOMEM;
	cmd->taken = true;
	kube_mark(cmd->job);
	return 0;
}

/* --- what came of it --- */

void kube_command_look(struct kube_job *job)
{
	const struct spec_control *control = job->k->kind->control;
	struct kube_command *cmd = job->command;
	struct spec_control_mark before;

	if (!cmd || !cmd->phase || cmd->outcome)
		return;
	before = (struct spec_control_mark){.phase = cmd->phase, .retries = cmd->retries};
	cmd->outcome = control->outcome(cmd->action, &before, job->view);
}

unsigned kube_command_pending(const struct kube_job *job)
{
	const struct kube_command *cmd = job->command;

	return cmd && cmd->taken && !cmd->outcome ? 1u << cmd->action : 0;
}

void kube_command_shown(struct kube_job *job)
{
	struct kube_command *cmd = job->command;
	struct kube_control *c = cmd ? cmd->asker : NULL;
	cleanup_free char *text = NULL;
	bool late;

	if (!cmd || !cmd->outcome)
		return;
	late = cmd->outcome == SPEC_CONTROL_LATE;
	if (late && asprintf(&text, "%s came too late: the job is %s",
			     spec_action_name(cmd->action), job->view->phase) < 0)
		text = NULL;
	if (late && !c)
		diag(DIAG_WARNING, "%s: %s", job->view->meta.name, text ? text : "");
	kube_command_drop(cmd);
	if (c)
		kube_op_answer(&c->op, late ? -EINVAL : 0, NULL, text);
}

void kube_command_gone(struct kube_job *job)
{
	struct kube_control *c = job->command ? job->command->asker : NULL;

	if (job->command)
		kube_command_drop(job->command);
	if (c)
		kube_op_answer(&c->op, -ENOENT, NULL, "the job was deleted meanwhile");
}
