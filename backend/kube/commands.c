/* SPDX-License-Identifier: MIT */
/*
 * The steps of a command. A job has at most one command.
 *
 *	step	what is in progress		what ends it			next
 *	NONE	no command			commands_begin is called	ASKED
 *	ASKED	control.c reads the job, and	the server accepts the request,	TAKEN
 *		sends the request		or kxfs gets no clear reply
 *						the server refuses the request	NONE
 *	TAKEN	a wait for the job's controller	the job shows the outcome	DONE
 *						30 s without an outcome: the	NONE
 *						job has ignored the command
 *	DONE	kxfs publishes the outcome	the store has the new snapshot	NONE
 *
 * If the watch shows the outcome before the reply arrives, DONE follows ASKED directly. In each
 * step, the command also ends if the job leaves jobs/. If the job has ignored a command, struct
 * command remembers this until the next command begins.
 */
#include "backend/kube/commands.h"

#include <errno.h>

#include <uthash.h>

#include "backend/base/diag.h"
#include "spec/base/mem.h"
#include "spec/view/view.h"

#define IGNORED_MS 30000

enum step { STEP_NONE, STEP_ASKED, STEP_TAKEN, STEP_DONE };

struct command {
	struct commands *cs;
	char *uid;
	char *id;
	enum step step;
	enum spec_action action;
	unsigned ignored; /* 1 << ACTION if the job has ignored the command, otherwise 0 */
	/* the job's phase and retries when kxfs sent the request; before that, PHASE is NULL */
	char *phase;
	unsigned retries;
	char *argument; /* the argument that was sent, or NULL */
	bool unsure;	/* true if kxfs does not know whether the server has accepted the command */
	enum spec_control_outcome outcome;
	struct loop_timer timer; /* runs in TAKEN; expires if the job has ignored the command */
	command_ended_fn ended;	 /* NULL if no process waits for the result */
	void *data;
	UT_hash_handle hh; /* by uid */
};

struct commands {
	struct loop *loop;
	void (*changed)(void *data, const char *uid);
	void *data;
	struct command *all;
};

static struct command *find(const struct commands *cs, const char *uid)
{
	struct command *cmd;

	HASH_FIND_STR(cs->all, uid, cmd);
	return cmd;
}

static struct command *find_open(const struct commands *cs, const char *uid)
{
	struct command *cmd = find(cs, uid);

	return cmd && cmd->step != STEP_NONE ? cmd : NULL;
}

static void set_none(struct command *cmd)
{
	cmd->step = STEP_NONE;
	loop_timer_stop(&cmd->timer);
	free(take_ptr(cmd->phase));
	free(take_ptr(cmd->argument));
	cmd->ended = NULL;
	cmd->unsure = false;
	cmd->outcome = SPEC_CONTROL_OPEN;
}

/* End the command. Call ENDED last, because this callback may begin the job's next command. */
static void end(struct command *cmd, enum command_end how, const char *text)
{
	command_ended_fn ended = cmd->ended;
	void *data = cmd->data;

	set_none(cmd);
	if (ended)
		ended(data, how, text);
}

static void on_ignored(void *data)
{
	struct command *cmd = data;

	diag(DIAG_WARNING, "%s: %s had no effect within %d s: %s", cmd->id,
	     spec_action_name(cmd->action), IGNORED_MS / 1000,
	     cmd->unsure ? "the server did not receive it, or the job's controller ignored it"
			 : "the job's controller ignored it");
	cmd->ignored = 1u << cmd->action;
	cmd->cs->changed(cmd->cs->data, cmd->uid);
	end(cmd, COMMAND_IGNORED, "the job's controller has not acted on the command");
}

int commands_begin(struct commands *cs, const char *uid, const char *id, enum spec_action action,
		   command_ended_fn ended, void *data)
{
	struct command *cmd = find(cs, uid);

	if (cmd && cmd->step != STEP_NONE)
		return -EBUSY;
	if (!cmd) {
		cmd = new0(struct command);
		cmd->cs = cs;
		loop_timer_init(&cmd->timer, cs->loop, on_ignored, cmd);
		cmd->uid = text_copy(uid);
		cmd->id = text_copy(id);
		HASH_ADD_KEYPTR(hh, cs->all, cmd->uid, strlen(cmd->uid), cmd);
	}
	cmd->step = STEP_ASKED;
	cmd->action = action;
	cmd->ignored = 0;
	cmd->ended = ended;
	cmd->data = data;
	return 0;
}

void commands_sent(struct commands *cs, const char *uid, const struct spec_job_view *view,
		   const char *argument)
{
	struct command *cmd = find_open(cs, uid);

	if (!cmd)
		return;
	text_set(&cmd->phase, "%s", view->phase);
	cmd->retries = view->retries;
	free(cmd->argument);
	cmd->argument = argument ? text_copy(argument) : NULL;
}

void commands_taken(struct commands *cs, const char *uid, bool unsure)
{
	struct command *cmd = find_open(cs, uid);

	if (!cmd)
		return;
	if (!loop_timer_is_set(&cmd->timer))
		loop_timer_set(&cmd->timer, IGNORED_MS);
	cmd->unsure = unsure;
	if (cmd->step == STEP_ASKED)
		cmd->step = STEP_TAKEN;
	cs->changed(cs->data, uid);
}

void commands_leave(struct commands *cs, const char *uid)
{
	struct command *cmd = find_open(cs, uid);

	if (cmd && cmd->step == STEP_ASKED)
		set_none(cmd);
	else if (cmd)
		cmd->ended = NULL;
}

bool commands_check(struct commands *cs, const char *uid, const struct spec_control *control,
		    const struct spec_control_job *job)
{
	struct command *cmd = find_open(cs, uid);

	if (!cmd || !cmd->phase || !control)
		return false;
	if (cmd->step != STEP_DONE) {
		const struct spec_control_mark before = {.phase = cmd->phase,
							 .retries = cmd->retries,
							 .argument = cmd->argument};

		cmd->outcome = control->outcome(cmd->action, &before, job);
		if (cmd->outcome != SPEC_CONTROL_OPEN)
			cmd->step = STEP_DONE;
	}
	return cmd->step == STEP_DONE;
}

unsigned commands_pending(const struct commands *cs, const char *uid)
{
	const struct command *cmd = find(cs, uid);

	return cmd && cmd->step == STEP_TAKEN ? 1u << cmd->action : 0;
}

unsigned commands_ignored(const struct commands *cs, const char *uid)
{
	const struct command *cmd = find(cs, uid);

	return cmd ? cmd->ignored : 0;
}

void commands_shown(struct commands *cs, const char *uid, const char *phase)
{
	struct command *cmd = find_open(cs, uid);
	cleanup_free char *text = NULL;

	if (!cmd || cmd->step != STEP_DONE)
		return;
	if (cmd->outcome != SPEC_CONTROL_LATE) {
		end(cmd, COMMAND_OBEYED, NULL);
		return;
	}
	text = text_print("%s came too late: the job is %s", spec_action_name(cmd->action), phase);
	if (!cmd->ended)
		diag(DIAG_WARNING, "%s: %s", cmd->id, text);
	end(cmd, COMMAND_LATE, text);
}

static void command_free(struct command *cmd)
{
	set_none(cmd);
	HASH_DEL(cmd->cs->all, cmd);
	free(cmd->uid);
	free(cmd->id);
	free(cmd);
}

void commands_gone(struct commands *cs, const char *uid)
{
	struct command *cmd = find(cs, uid);
	command_ended_fn ended = cmd ? cmd->ended : NULL;
	void *data = cmd ? cmd->data : NULL;

	if (cmd)
		command_free(cmd);
	if (ended)
		ended(data, COMMAND_GONE, NULL);
}

struct commands *commands_new(struct loop *loop)
{
	struct commands *cs = new0(struct commands);

	cs->loop = loop;
	return cs;
}

void commands_set_changed(struct commands *cs, void (*changed)(void *data, const char *uid),
			  void *data)
{
	cs->changed = changed;
	cs->data = data;
}

void commands_stop(struct commands *cs)
{
	struct command *cmd, *next;

	HASH_ITER(hh, cs->all, cmd, next)
		command_free(cmd);
}

void commands_free(struct commands *cs)
{
	if (cs)
		commands_stop(cs);
	free(cs);
}
