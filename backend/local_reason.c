/* SPDX-License-Identifier: MIT */
/*
 * In words why an attempt has ended, and what of its output is lost: the reason and the message of
 * a replica, and of a job that ended because of it. What cost output is the reason of all else.
 */
#include "backend/local.h"

void local_signal_text(int sig, char ret[32])
{
	const char *name = sigabbrev_np(sig);

	if (name)
		snprintf(ret, 32, "%d (SIG%s)", sig, name);
	else
		snprintf(ret, 32, "%d", sig);
}

static void how_it_ended(const struct local_replica *rep, char ret[64])
{
	char name[32];

	local_signal_text(rep->rec->signal, name);
	if (rep->rec->state == SPEC_SUCCEEDED || rep->step == LOCAL_RUNNING)
		*ret = '\0';
	else if (rep->rec->signal)
		snprintf(ret, 64, "ended by signal %s", name);
	else
		snprintf(ret, 64, "exit code %d", rep->rec->exit_code);
}

void local_replica_say(struct local_replica *rep)
{
	char text[64];

	how_it_ended(rep, text);
	if (!rep->lost) {
		local_say(&rep->rec->message, "%s", text);
		return;
	}
	local_say(&rep->rec->message, "%s%s%s", text, *text ? "; " : "", rep->lost);
	if (rep->rec->state != SPEC_CANCELLED && !rep->again)
		local_say(&rep->rec->reason, LOCAL_LOST);
}

void local_job_blame(struct local_job *job, struct local_replica *rep)
{
	job->blamed = rep;
	local_say(&job->rec->reason, "%s", rep->rec->reason);
	local_say(&job->rec->message, "%s-%u: %s", local_replica_role(rep)->name, rep->rec->id,
		  rep->rec->message);
}

void local_replica_lost(struct local_replica *rep, char *text)
{
	struct local_job *job = rep->job;

	free(rep->lost);
	rep->lost = text;
	diag(DIAG_ERROR, "%s: %s-%u: %s", job->rec->id, local_replica_role(rep)->name, rep->rec->id,
	     text ? text : "its output is cut");
	local_replica_say(rep);
	if (job->blamed == rep)
		local_job_blame(job, rep);
	local_job_touch(job);
}
