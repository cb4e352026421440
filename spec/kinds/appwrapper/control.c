/* SPDX-License-Identifier: MIT */
/*
 * ctl on AppWrappers of v1beta2: spec.suspend, which the controller follows in every phase but the last ones. Where the
 * job is in a queue of Kueue, spec.suspend belongs to Kueue.
 */
#include "spec/base/mem.h"
#include "spec/kinds/kind.h"
#include "spec/view/control.h"
#include "spec/view/view.h"

#define BIT(action) (1u << (action))

/* Is PHASE on the way to Suspended, or there? */
static bool is_suspended(const char *phase)
{
	return streq(phase, "Suspending") || streq(phase, "Suspended");
}

static bool is_over(const struct spec_job_view *job)
{
	return job->meta.deleted || streq(job->phase, "Succeeded") || streq(job->phase, "Failed") ||
	       streq(job->phase, "Terminating");
}

static unsigned actions(const struct spec_job_view *job)
{
	if (is_over(job) || *job->queue)
		return 0;
	return job->asked ? BIT(SPEC_RESUME) : BIT(SPEC_SUSPEND);
}

static const char *refusal(const struct spec_job_view *job, enum spec_action action)
{
	(void)action;
	if (job->meta.deleted)
		return "it is being deleted";
	if (*job->queue && !is_over(job))
		return "it is in a queue of Kueue, which suspends and resumes its jobs itself";
	return NULL;
}

/* The uid tells the server which job of this name is meant. */
static int request(const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	*ret = (struct spec_control_request){
		.patch = true,
		.resource = "appwrappers.workload.codeflare.dev",
	};
	ret->path = text_print("/apis/workload.codeflare.dev/v1beta2/namespaces/%s/appwrappers/%s"
			       "?fieldManager=kxfs",
			       asked->namespace, asked->job->meta.name);
	ret->body =
		text_print("{\"metadata\":{\"uid\":\"%s\"},\"spec\":{\"suspend\":%s}}",
			   asked->job->meta.uid, asked->action == SPEC_SUSPEND ? "true" : "false");
	return 0;
}

static enum spec_control_outcome outcome(enum spec_action action,
					 const struct spec_control_mark *before,
					 const struct spec_job_view *now)
{
	(void)before;
	if (is_over(now))
		return SPEC_CONTROL_LATE;
	return is_suspended(now->phase) == (action == SPEC_SUSPEND) &&
			       now->asked == (action == SPEC_SUSPEND)
		       ? SPEC_CONTROL_OBEYED
		       : SPEC_CONTROL_OPEN;
}

const struct spec_control spec_appwrapper_control = {
	.known = BIT(SPEC_SUSPEND) | BIT(SPEC_RESUME),
	.actions = actions,
	.refusal = refusal,
	.request = request,
	.outcome = outcome,
};
