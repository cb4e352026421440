/* SPDX-License-Identifier: MIT */
/* Suspends and resumes jobs, and changes their queue and priority (suspend.h). */
#include "spec/pods/suspend.h"

#include <errno.h>

#include "spec/api/refusal.h"
#include "spec/base/mem.h"
#include "spec/base/value.h"
#include "spec/pods/kind.h"
#include "spec/view/kueue.h"
#include "spec/view/view.h"

static const char no_right[] =
	"the job is in a Kueue queue, so kxfs has to set spec.active of the job's Workload, "
	"but this user has no right to patch workloads.kueue.x-k8s.io; to end the job, remove "
	"its directory; to run it again, copy its manifest.yaml into submit/";

/* True if Kueue manages JOB. The Workload then shows whether JOB is suspended. */
static bool in_queue(const struct spec_control_job *job)
{
	return *job->view->queue || job->kueue->workload;
}

/* True if a user has suspended JOB. */
static bool is_asked(const struct spec_control_job *job)
{
	const struct spec_workload_view *workload = job->kueue->workload;

	return in_queue(job) ? workload && !workload->active : job->view->asked;
}

static bool is_out_for_good(const struct spec_control_job *job)
{
	const struct spec_workload_view *workload = job->kueue->workload;

	return in_queue(job) && workload && *spec_workload_put_out(workload);
}

/*
 * True if JOB, which has a Workload, waits without quota. Kueue lets only such a job change its
 * queue.
 */
static bool is_waiting(const struct spec_control_job *job)
{
	const struct spec_workload_view *workload = job->kueue->workload;
	const struct spec_job_view *view = job->view;

	return workload->active && !workload->conditions[SPEC_WORKLOAD_RESERVED].is_true &&
	       !workload->conditions[SPEC_WORKLOAD_FINISHED].is_true &&
	       (view->suspends || !*view->phase);
}

/* True if Kueue would apply a change of the label that ACTION sets. JOB has a Workload. */
static bool takes_label(const struct spec_control_job *job, enum spec_action action)
{
	bool waits = is_waiting(job);
	unsigned takes = job->kueue->workload->takes_priority;

	if (action == SPEC_QUEUE)
		return waits;
	return takes == SPEC_PRIORITY_ANY || (waits && takes == SPEC_PRIORITY_WAITING);
}

static int check(const struct spec_control_job *job, enum spec_action action, const char **ret_why)
{
	bool is_label = action == SPEC_QUEUE || action == SPEC_PRIORITY;
	const struct spec_workload_view *workload = job->kueue->workload;
	const struct spec_job_view *view = job->view;

	*ret_why = NULL;
	if (view->meta.deleted || view->owned) {
		*ret_why = view->meta.deleted
				   ? "the job is being deleted"
				   : "only the job's owner can suspend and resume it: see "
				     "ownerReferences in manifest.yaml";
		return -EINVAL;
	}
	if (action == SPEC_TERMINATE && *view->phase && !view->suspends && !view->over)
		return 0;
	if (is_out_for_good(job))
		*ret_why = "Kueue evicted the job permanently, and would do so again: to run it "
			   "again, copy its manifest.yaml into submit/";
	else if (!view->over && action == SPEC_TERMINATE && view->suspends)
		*ret_why = "the job is suspended; to end the job, remove its directory";
	if (*ret_why || view->over || action == SPEC_TERMINATE)
		return -EINVAL;
	if (is_label && !in_queue(job))
		*ret_why = "the job is not in a Kueue queue";
	else if (in_queue(job) && !workload && job->kueue->known)
		*ret_why = "the job is in a Kueue queue, but Kueue has not created a Workload "
			   "for it yet";
	else if (in_queue(job) && !workload) {
		*ret_why = job->kueue->absent
				   ? "the job is in a Kueue queue, but Kueue is not installed in "
				     "this cluster"
				   : "the job is in a Kueue queue, so kxfs has to set spec.active "
				     "of the job's Workload, but this mount can't watch Workloads; "
				     "see .kxfs/info";
		return -EOPNOTSUPP;
	} else if (is_label ? takes_label(job, action) : is_asked(job) == (action == SPEC_RESUME))
		return 0;
	else if (action == SPEC_QUEUE)
		*ret_why = "Kueue can move a job to another queue only while the job waits";
	else if (action == SPEC_PRIORITY)
		*ret_why = workload->takes_priority == SPEC_PRIORITY_WAITING
				   ? "Kueue does not change the priority class of a job that "
				     "already has quota"
				   : "Kueue does not apply a new priority class to the Workload "
				     "of this job";
	return -EINVAL;
}

/*
 * Make a JSON merge patch for the object META. If KEY is NULL, the patch changes spec to JSON.
 * Otherwise, it sets the label KEY to JSON. If VERSION is not "", the server refuses the patch
 * unless VERSION is the object's resourceVersion.
 */
static void patch(struct spec_control_request *ret, const struct spec_control_asked *asked,
		  const char *api_version, const char *plural, const struct spec_meta *meta,
		  const char *version, const char *key, const char *json)
{
	ret->patch = true;
	ret->path = text_print("/apis/%s/namespaces/%s/%s/%s?fieldManager=kxfs", api_version,
			       asked->namespace, plural, meta->name);
	ret->body = text_print(key ? "{\"metadata\":{\"uid\":\"%s\"%s%s%s,\"labels\":{\"%s\":%s}}}"
				   : "{\"metadata\":{\"uid\":\"%s\"%s%s%s},\"%s\":%s}",
			       meta->uid, *version ? ",\"resourceVersion\":\"" : "", version,
			       *version ? "\"" : "", key ? key : "spec", json);
}

static void patch_job(struct spec_control_request *ret, const struct spec_control_asked *asked,
		      const char *key, const char *json)
{
	const struct spec_kind *kind = asked->kind;
	const struct spec_job_view *job = asked->job->view;

	ret->resource = spec_asked_resource(kind->plural, kind->api_version);
	patch(ret, asked, kind->api_version, kind->plural, &job->meta, job->resource_version, key,
	      json);
}

/*
 * Set FIELD, a path below spec ("runPolicy.suspend"), to VALUE (JSON). The server refuses the patch
 * if the job has changed since kxfs read it.
 */
static void patch_spec(struct spec_control_request *ret, const struct spec_control_asked *asked,
		       const char *field, const char *value)
{
	cleanup_free char *json = text_copy(value);

	for (const char *end = field + strlen(field), *from; end; end = from) {
		for (from = end; from > field && from[-1] != '.';)
			from--;
		text_set(&json, "{\"%.*s\":%s}", (int)(end - from), from, json);
		from = from > field ? from - 1 : NULL;
	}
	patch_job(ret, asked, NULL, json);
}

static void request(const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	bool suspend = asked->action == SPEC_SUSPEND;
	const char *named = asked->argument;
	cleanup_free char *value = named ? text_print("\"%s\"", named) : NULL;

	*ret = (struct spec_control_request){0};
	/*
	 * First check that the queue or class exists: a job in a missing queue would wait forever,
	 * and Kueue ignores a missing class.
	 */
	if (asked->action == SPEC_QUEUE) {
		patch_job(ret, asked, SPEC_KUEUE_QUEUE, value);
		ret->needed = text_print("/apis/%s/namespaces/%s/localqueues/%s", asked->kueue,
					 asked->namespace, named);
		ret->missing =
			text_print("there is no queue %s in namespace %s; queues/ lists them",
				   named, asked->namespace);
		return;
	}
	if (asked->action == SPEC_PRIORITY) {
		patch_job(ret, asked, SPEC_KUEUE_PRIORITY, value);
		ret->needed =
			text_print("/apis/%s/workloadpriorityclasses/%s", asked->kueue, named);
		ret->missing = text_print("there is no Kueue priority class %s: kubectl get "
					  "workloadpriorityclasses lists them",
					  named);
		return;
	}
	if (asked->action == SPEC_TERMINATE) {
		const char *to = asked->kind->terminate_to;
		const char *quote = spec_read_digits(to) < 0 ? "\"" : "";
		cleanup_free char *json = text_print("%s%s%s", quote, to, quote);

		patch_spec(ret, asked, asked->kind->terminate, json);
		return;
	}
	if (in_queue(asked->job)) {
		ret->resource = text_copy("workloads." SPEC_KUEUE_GROUP);
		ret->forbidden = no_right;
		patch(ret, asked, asked->kueue, "workloads", &asked->job->kueue->workload->meta, "",
		      NULL, suspend ? "{\"active\":false}" : "{\"active\":true}");
		return;
	}
	patch_spec(ret, asked, asked->kind->suspend, suspend ? "true" : "false");
}

/* True if WORKLOAD already has WANTED, the label that ACTION sets in the job. */
static bool follows_label(const struct spec_workload_view *workload, enum spec_action action,
			  const char *wanted)
{
	return streq(action == SPEC_QUEUE ? workload->queue : workload->priority_class, wanted);
}

/*
 * Implement spec_control.outcome. A job in a queue has obeyed SPEC_RESUME when its Workload is
 * active, even without quota.
 */
static enum spec_control_outcome outcome(enum spec_action action,
					 const struct spec_control_mark *before,
					 const struct spec_control_job *now)
{
	bool wanted = action == SPEC_SUSPEND;
	const struct spec_workload_view *workload = now->kueue->workload;

	if (action == SPEC_TERMINATE && strncmp(now->view->phase, "Terminat", 8) == 0)
		return SPEC_CONTROL_OBEYED;
	/*
	 * The server accepts the patch only while the job is suspended. So the job has resumed, and
	 * ended after that.
	 */
	if (action == SPEC_RESUME && now->view->over && !in_queue(now) && !is_asked(now))
		return SPEC_CONTROL_OBEYED;
	if (now->view->over || now->view->meta.deleted ||
	    (action == SPEC_TERMINATE && now->view->suspends))
		return SPEC_CONTROL_LATE;
	if (action == SPEC_TERMINATE)
		return SPEC_CONTROL_OPEN;
	if (in_queue(now) && !workload)
		return SPEC_CONTROL_OPEN;
	if (before->argument) {
		if (workload && follows_label(workload, action, before->argument))
			return SPEC_CONTROL_OBEYED;
		/* A job that has quota can't change its queue. */
		return action == SPEC_QUEUE && workload &&
				       workload->conditions[SPEC_WORKLOAD_RESERVED].is_true
			       ? SPEC_CONTROL_LATE
			       : SPEC_CONTROL_OPEN;
	}
	if (is_asked(now) != wanted)
		return SPEC_CONTROL_OPEN;
	if (!wanted && in_queue(now))
		return SPEC_CONTROL_OBEYED;
	return now->view->suspends == wanted ? SPEC_CONTROL_OBEYED : SPEC_CONTROL_OPEN;
}

#define KNOWN (1u << SPEC_SUSPEND | 1u << SPEC_RESUME | 1u << SPEC_QUEUE | 1u << SPEC_PRIORITY)

const struct spec_control suspend_control = {
	.known = KNOWN,
	.check = check,
	.request = request,
	.outcome = outcome,
};

const struct spec_control suspend_or_terminate_control = {
	.known = KNOWN | 1u << SPEC_TERMINATE,
	.check = check,
	.request = request,
	.outcome = outcome,
};
