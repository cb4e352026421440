/* SPDX-License-Identifier: MIT */
/* Controllers follow spec.suspend in every phase but the last ones, and Kueue spec.active of a Workload. */
#include "spec/pods/suspend.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/view/kueue.h"
#include "spec/view/view.h"

/* What ctl can't do in a queue then, and what does the same without the right. */
static const char no_right[] =
	"it is in a queue of Kueue, where that is active of its Workload, and this user has no right to "
	"patch workloads.kueue.x-k8s.io; removing its directory ends it, and its app.yaml, copied into "
	"submit/, runs it again";

/* Is PHASE on the way to Suspended, or there? */
static bool is_suspended(const char *phase)
{
	return streq(phase, "Suspending") || streq(phase, "Suspended");
}

static bool is_over(const struct spec_job_view *job)
{
	static const char *const last[] = {"Succeeded",		 "Completed",	  "Complete",
					   "SuccessCriteriaMet", "FailureTarget", "Failed",
					   "Terminating",	 "Terminated"};

	for (size_t i = 0; i < array_size(last); i++)
		if (streq(job->phase, last[i]))
			return true;
	return job->meta.deleted;
}

/* Is it Kueue that suspends and resumes JOB, as its Workload says? */
static bool in_queue(const struct spec_control_job *job)
{
	return *job->view->queue;
}

/* Does somebody want JOB to be suspended? */
static bool is_asked(const struct spec_control_job *job)
{
	const struct spec_workload_view *workload = job->kueue->workload;

	return in_queue(job) ? workload && !workload->active : job->view->asked;
}

/*
 * Has a limit of its own put JOB out? Kueue then puts it out again as soon as its Workload is active
 * (pkg/controller/core/workload_controller.go).
 */
static bool is_out_for_good(const struct spec_control_job *job)
{
	const struct spec_workload_view *workload = job->kueue->workload;

	return in_queue(job) && workload && !workload->active &&
	       workload->conditions[SPEC_WORKLOAD_TARGET].is_true;
}

unsigned suspend_actions(const struct spec_control_job *job)
{
	if (is_over(job->view) || job->view->owned ||
	    (in_queue(job) && (!job->kueue->workload || job->kueue->fixed)) || is_out_for_good(job))
		return 0;
	return 1u << (is_asked(job) ? SPEC_RESUME : SPEC_SUSPEND);
}

int suspend_refusal(const struct spec_control_job *job, enum spec_action action,
		    const char **ret_why)
{
	(void)action;
	*ret_why = NULL;
	if (job->view->meta.deleted)
		*ret_why = "it is being deleted";
	else if (job->view->owned)
		*ret_why = "what owns it suspends and resumes it: its ownerReferences in "
			   "manifest.yaml name that";
	else if (is_out_for_good(job))
		*ret_why =
			"Kueue has put it out for good, and would do so again: copy its app.yaml "
			"into submit/ to run it again";
	if (*ret_why || is_over(job->view) || !in_queue(job))
		return -EINVAL;
	if (job->kueue->workload) {
		*ret_why = job->kueue->fixed ? no_right : NULL;
		return job->kueue->fixed ? -EOPNOTSUPP : -EINVAL;
	}
	if (job->kueue->known) {
		*ret_why = "it is in a queue of Kueue, which has made no Workload for it yet";
		return -EINVAL;
	}
	*ret_why = "it is in a queue of Kueue, where that is active of its Workload, and this "
		   "mount can't watch Workloads; .kxfs/info says why";
	return -EOPNOTSUPP;
}

/*
 * The merge patch of the object NAME of PLURAL in API_VERSION that sets FIELD of its spec, if it still is of VERSION
 * ("": whatever it is by now).
 */
static void patch(struct spec_control_request *ret, const struct spec_control_asked *asked,
		  const char *api_version, const char *plural, const struct spec_meta *meta,
		  const char *version, const char *field, const char *value)
{
	ret->patch = true;
	ret->path = text_print("/apis/%s/namespaces/%s/%s/%s?fieldManager=kxfs", api_version,
			       asked->namespace, plural, meta->name);
	ret->body = text_print("{\"metadata\":{\"uid\":\"%s\"%s%s%s},\"spec\":{\"%s\":%s}}",
			       meta->uid, *version ? ",\"resourceVersion\":\"" : "", version,
			       *version ? "\"" : "", field, value);
}

void suspend_patch(struct spec_control_request *ret, const struct spec_control_asked *asked,
		   const char *api_version, const char *plural, const char *field,
		   const char *value)
{
	const struct spec_job_view *job = asked->job->view;

	patch(ret, asked, api_version, plural, &job->meta, job->resource_version, field, value);
}

int suspend_request(const char *api_version, const char *plural, const char *resource,
		    const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	bool suspend = asked->action == SPEC_SUSPEND;

	if (in_queue(asked->job)) {
		*ret = (struct spec_control_request){
			.resource = "workloads." SPEC_KUEUE_GROUP,
			.forbidden = no_right,
		};
		patch(ret, asked, asked->kueue, "workloads", &asked->job->kueue->workload->meta, "",
		      "active", suspend ? "false" : "true");
		return 0;
	}
	*ret = (struct spec_control_request){.resource = resource};
	suspend_patch(ret, asked, api_version, plural, "suspend", suspend ? "true" : "false");
	return 0;
}

/*
 * A job that Kueue may admit again is in its queue, and Suspended as long as it waits there; so it has resumed when its
 * Workload is active.
 */
enum spec_control_outcome suspend_outcome(enum spec_action action,
					  const struct spec_control_mark *before,
					  const struct spec_control_job *now)
{
	bool wanted = action == SPEC_SUSPEND;

	(void)before;
	if (is_over(now->view))
		return SPEC_CONTROL_LATE;
	if (in_queue(now) && !now->kueue->workload)
		return SPEC_CONTROL_OPEN;
	if (is_asked(now) != wanted)
		return SPEC_CONTROL_OPEN;
	if (!wanted && in_queue(now))
		return SPEC_CONTROL_OBEYED;
	return is_suspended(now->view->phase) == wanted ? SPEC_CONTROL_OBEYED : SPEC_CONTROL_OPEN;
}
