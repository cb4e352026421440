/* SPDX-License-Identifier: MIT */
/* Messages and reasons of ended attempts. */
#include "backend/local/outcome.h"

#include <errno.h>
#include <signal.h>

#include "spec/base/mem.h"
#include "spec/base/time.h"

/* Return why the program could not be started, with the name of the file. */
static char *why_not_started(const struct spec_record *rec, const struct spec_replica *rep,
			     const struct task_end *end)
{
	const char *entrypoint = rec->app ? rec->app->roles[rep->role].entrypoint : "";

	switch (end->why) {
	case TASK_APP:
		return text_copy(rec->fault);
	case TASK_OUTPUT:
		return text_print("its output can't be kept: %s", strerror(end->err));
	case TASK_CWD:
		return text_print("working directory \"%s\": %s", rec->work_dir,
				  strerror(end->err));
	case TASK_EXEC:
		return text_print("exec: \"%s\": %s", entrypoint, strerror(end->err));
	case TASK_SEARCH:
		return text_print("exec: \"%s\": not found in PATH", entrypoint);
	case TASK_HELPER:
		break;
	}
	return text_print("its helper can't be started: %s", strerror(end->err));
}

char *outcome_text(const struct spec_record *rec, const struct spec_replica *rep,
		   const struct task_end *end)
{
	const char *sig = sigabbrev_np(end->sig);
	char name[32];

	snprintf(name, sizeof(name), "%d%s%s%s", end->sig, sig ? " (SIG" : "", sig ? sig : "",
		 sig ? ")" : "");
	if (end->how == TASK_NOT_STARTED)
		return why_not_started(rec, rep, end);
	if (end->how == TASK_KILLED && end->sig)
		return text_print("the helper process that ran it was ended by signal %s", name);
	if (end->how == TASK_KILLED)
		return text_copy("the helper process that ran it was killed");
	if (end->err == ETIMEDOUT) {
		spec_time_span_text(rec->job->time_limit, name);
		return text_print("ran longer than its limit of %s", name);
	}
	if (end->sig)
		return text_print("ended by signal %s", name);
	return end->exit_code ? text_print("exit code %d", end->exit_code) : text_copy("");
}

const char *outcome_reason(bool again, const struct task_end *end)
{
	if (end->how == TASK_NOT_STARTED)
		return "StartError";
	if (again)
		return "Restarting";
	if (end->how == TASK_KILLED)
		return "HelperKilled";
	if (end->err == ETIMEDOUT)
		return "DeadlineExceeded";
	if (end->sig)
		return "Signal";
	return end->exit_code ? "Error" : "Completed";
}

bool outcome_passes(const struct task_end *end)
{
	return end->how == TASK_NOT_STARTED &&
	       (end->err == EAGAIN || end->err == ENOMEM || end->err == EMFILE ||
		end->err == ENFILE || end->err == ENOBUFS);
}
