/* SPDX-License-Identifier: MIT */
/*
 * AppWrappers of v1beta2, as the AppWrapper controller writes them. It deletes all pods of an attempt before it makes
 * the next one's, and those of a job that has failed.
 */
#include "spec/base/mem.h"
#include "spec/kinds/appwrapper/make.h"
#include "spec/kinds/kind.h"
#include "spec/kinds/wrap.h"
#include "spec/view/kueue.h"

/* What the controller allows where the annotation is missing. */
#define DEFAULT_RETRIES 3

static const struct spec_phase phases[] = {
	{.name = "Suspended",
	 .state = SPEC_CANCELLED,
	 .ending = true,
	 .suspended = true,
	 .asked = true},
	{.name = "Suspended", .state = SPEC_PENDING},
	{.name = "Resuming", .state = SPEC_PENDING},
	{.name = "Running", .state = SPEC_RUNNING, .by_pods = true},
	{.name = "Resetting", .state = SPEC_PENDING},
	{.name = "Suspending", .state = SPEC_RUNNING, .ending = true, .asked = true},
	{.name = "Suspending", .state = SPEC_RUNNING},
	{.name = "Terminating", .state = SPEC_RUNNING, .ending = true},
	{.name = "Succeeded", .state = SPEC_SUCCEEDED, .ending = true},
	{.name = "Failed", .state = SPEC_FAILED, .ending = true},
	{0},
};

static struct json_object *metadata_of(struct json_object *object)
{
	return spec_read_map(object, "metadata");
}

static const char *label_of(struct json_object *object, const char *key)
{
	return spec_read_text(spec_view_labels(object), key);
}

/* --- what follows from the spec --------------------------------------------------------------- */

static struct json_object *wrapped(struct json_object *object, const char **ret_key)
{
	*ret_key = "template";
	return spec_read_list(spec_read_map(object, "spec"), "components");
}

static size_t read_job(struct json_object *object, struct spec_job_view *v,
		       struct spec_task_source **ret_tasks)
{
	struct json_object *spec = spec_read_map(object, "spec");
	struct json_object *notes = spec_read_map(metadata_of(object), "annotations");
	int retries = spec_read_digits(spec_read_text(notes, APPWRAPPER_RETRIES));
	const char *queue = label_of(object, SPEC_KUEUE_QUEUE);
	const char *key;
	struct json_object *components = wrapped(object, &key);
	size_t n = wrap_tasks(components, key, v, ret_tasks);

	v->max_retries = retries < 0 ? DEFAULT_RETRIES : (unsigned)retries;
	v->restarts = v->max_retries > 0;
	/* In a queue, it is Kueue that suspends and resumes. */
	v->asked = spec_read_bool(spec, "suspend") && !*queue;
	v->minimum = (unsigned)min_of(n, (size_t)INT32_MAX);
	spec_read_copy(&v->queue, queue, READ_MAX_WORD);
	return n;
}

/* --- what follows from the status -------------------------------------------------------------- */

/* The condition of this type; NULL: none. */
static struct json_object *condition(struct json_object *status, const char *type)
{
	struct json_object *list = spec_read_list(status, "conditions");

	for (size_t i = 0; i < spec_read_count(list); i++) {
		struct json_object *c = spec_read_at(list, i);

		if (streq(spec_read_text(c, "type"), type))
			return c;
	}
	return NULL;
}

static bool is_true(struct json_object *c)
{
	return streq(spec_read_text(c, "status"), "True");
}

/* A job that has ended stays what it was while it is being deleted. */
static const char *phase_of(struct json_object *status)
{
	const char *phase = spec_read_text(status, "phase");
	const char *ended = spec_read_text(condition(status, "QuotaReserved"), "reason");

	return streq(phase, "Terminating") && (streq(ended, "Succeeded") || streq(ended, "Failed"))
		       ? ended
		       : phase;
}

/* When the phase began, or the last thing happened since. */
static int64_t changed(struct json_object *status)
{
	struct json_object *list = spec_read_list(status, "conditions");
	struct json_object *quota = condition(status, "QuotaReserved");
	struct json_object *unhealthy = condition(status, "Unhealthy");
	const char *phase = phase_of(status);
	int64_t ret = 0;

	/* The quota is given back once, when the job ends; conditions go on changing while it is cleared up. */
	if (quota && streq(spec_read_text(quota, "reason"), phase))
		return spec_read_time(quota, "lastTransitionTime");
	/* Pods that fail are given a minute before the controller acts, and of that no condition tells the time. */
	if ((streq(phase, "Failed") || streq(phase, "Resetting")) &&
	    streq(spec_read_text(unhealthy, "reason"), "FoundFailedPods"))
		return 0;
	for (size_t i = 0; i < spec_read_count(list); i++)
		ret = max_of(ret, spec_read_time(spec_read_at(list, i), "lastTransitionTime"));
	return ret;
}

/* Pods that were made earlier belong to an attempt that is over. */
static int64_t began(struct json_object *status, const char *phase)
{
	struct json_object *deployed = condition(status, "ResourcesDeployed");
	int64_t ret = spec_read_time(deployed, "lastTransitionTime");

	if (streq(phase, "Resetting") || (deployed && !is_true(deployed)))
		return INT64_MAX;
	return max_of(ret, INT64_C(1));
}

/* Why it waits, is tried again or has failed, where its pods do not tell. */
static void explain(struct json_object *object, struct spec_job_view *v)
{
	struct json_object *status = spec_read_map(object, "status");
	struct json_object *unhealthy = condition(status, "Unhealthy");
	const char *queue = label_of(object, SPEC_KUEUE_QUEUE);
	const char *reason = spec_read_text(unhealthy, "reason");

	if (streq(v->phase, "Suspended") && *queue) {
		spec_job_view_queued(v, queue);
		return;
	}
	/* If pods have failed, they say themselves which, and why. */
	if ((streq(v->phase, "Failed") || streq(v->phase, "Resetting")) && is_true(unhealthy) &&
	    !streq(reason, "FoundFailedPods")) {
		spec_read_copy(&v->reason, reason, READ_MAX_WORD);
		spec_read_copy(&v->message, spec_read_text(unhealthy, "message"), READ_MAX_MESSAGE);
	}
}

static void read_status(struct json_object *object, struct spec_job_view *v)
{
	struct json_object *status = spec_read_map(object, "status");
	const char *phase = phase_of(status);

	v->retries = (unsigned)spec_read_int(status, "resettingCount", 0);
	v->changed = changed(status);
	v->began = began(status, phase);
	spec_read_copy(&v->phase, phase, READ_MAX_WORD);
	explain(object, v);
}

const struct spec_reader spec_appwrapper_reader = {
	.job = read_job,
	.status = read_status,
	.pod = wrap_pod,
	.wrapped = wrapped,
	.phases = phases,
	.again = "The whole job is started again in about a minute.",
	.impatient = true,
};
