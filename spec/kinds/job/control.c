/* SPDX-License-Identifier: MIT */
/*
 * ctl on Jobs: spec.suspend as on others; and terminate, by a deadline that is over already. Its controller then ends
 * the pods and leaves the Job, which a DELETE would not.
 */
#include <errno.h>

#include "spec/kinds/kinds.h"
#include "spec/pods/suspend.h"
#include "spec/view/view.h"

/* A Job that is suspended has no time that a deadline could count. */
static unsigned actions(const struct spec_control_job *job)
{
	unsigned ret = streq(job->view->phase, "SuccessCriteriaMet") ? 0 : suspend_actions(job);
	bool runs =
		streq(job->view->phase, "Running") && !job->view->meta.deleted && !job->view->owned;

	return ret | (runs ? 1u << SPEC_TERMINATE : 0);
}

static int refusal(const struct spec_control_job *job, enum spec_action action,
		   const char **ret_why)
{
	int ret = suspend_refusal(job, action, ret_why);

	if (action == SPEC_TERMINATE && streq(job->view->phase, "Suspended") && !*ret_why)
		*ret_why = "it is suspended, so it has nothing to end: remove its directory";
	return action == SPEC_TERMINATE ? -EINVAL : ret;
}

static void request(const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	if (asked->action != SPEC_TERMINATE) {
		suspend_request(asked, ret);
		return;
	}
	*ret = (struct spec_control_request){.resource = "jobs.batch"};
	suspend_patch(ret, asked, "activeDeadlineSeconds", "0");
}

static enum spec_control_outcome outcome(enum spec_action action,
					 const struct spec_control_mark *before,
					 const struct spec_control_job *now)
{
	const char *phase = now->view->phase;

	if (action != SPEC_TERMINATE)
		return suspend_outcome(action, before, now);
	if (streq(phase, "Terminating") || streq(phase, "Terminated"))
		return SPEC_CONTROL_OBEYED;
	return streq(phase, "Running") ? SPEC_CONTROL_OPEN : SPEC_CONTROL_LATE;
}

const struct spec_control spec_job_control = {
	.known = SUSPEND_KNOWN | 1u << SPEC_TERMINATE,
	.actions = actions,
	.refusal = refusal,
	.request = request,
	.outcome = outcome,
};
