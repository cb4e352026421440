/* SPDX-License-Identifier: MIT */
/* Controllers follow spec.suspend in every phase but the last ones. */
#include "spec/kinds/suspend.h"

#include "spec/base/mem.h"
#include "spec/view/view.h"

/* Is PHASE on the way to Suspended, or there? */
static bool is_suspended(const char *phase)
{
	return streq(phase, "Suspending") || streq(phase, "Suspended");
}

static bool is_over(const struct spec_job_view *job)
{
	static const char *const last[] = {"Succeeded", "Completed", "Failed", "Terminating"};

	for (size_t i = 0; i < array_size(last); i++)
		if (streq(job->phase, last[i]))
			return true;
	return job->meta.deleted;
}

unsigned suspend_actions(const struct spec_job_view *job)
{
	if (is_over(job) || *job->queue)
		return 0;
	return 1u << (job->asked ? SPEC_RESUME : SPEC_SUSPEND);
}

const char *suspend_refusal(const struct spec_job_view *job, enum spec_action action)
{
	(void)action;
	if (job->meta.deleted)
		return "it is being deleted";
	if (*job->queue && !is_over(job))
		return "it is in a queue of Kueue, which suspends and resumes its jobs itself";
	return NULL;
}

int suspend_request(const char *api_version, const char *plural, const char *resource,
		    const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	*ret = (struct spec_control_request){.patch = true, .resource = resource};
	ret->path = text_print("/apis/%s/namespaces/%s/%s/%s?fieldManager=kxfs", api_version,
			       asked->namespace, plural, asked->job->meta.name);
	ret->body =
		text_print("{\"metadata\":{\"uid\":\"%s\"},\"spec\":{\"suspend\":%s}}",
			   asked->job->meta.uid, asked->action == SPEC_SUSPEND ? "true" : "false");
	return 0;
}

enum spec_control_outcome suspend_outcome(enum spec_action action,
					  const struct spec_control_mark *before,
					  const struct spec_job_view *now)
{
	bool wanted = action == SPEC_SUSPEND;

	(void)before;
	if (is_over(now))
		return SPEC_CONTROL_LATE;
	return is_suspended(now->phase) == wanted && now->asked == wanted ? SPEC_CONTROL_OBEYED
									  : SPEC_CONTROL_OPEN;
}
