/* SPDX-License-Identifier: MIT */
/*
 * The kind appwrapper: AppWrappers of v1beta2, the successors of MCAD's.
 *
 * Reading: the controller deletes all pods of an attempt before it creates those of the next one.
 * It also deletes the pods of a failed job.
 *
 * Making: each pod, pod group and service is a component. A label may select a queue of Kueue,
 * which then keeps spec.suspend set until the job has quota.
 */
#include "spec/kinds/kinds.h"
#include "spec/pods/suspend.h"
#include "spec/pods/wrap.h"
#include "spec/view/kueue.h"

#define APPWRAPPER_RETRIES "workload.codeflare.dev.appwrapper/retryLimit" /* annotation */

/* --- reading --- */

/* The number of retries if the annotation is missing. */
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
	{.name = "Suspending", .state = SPEC_RUNNING, .by_pods = true},
	{.name = "Terminating", .state = SPEC_RUNNING, .ending = true},
	{.name = "Succeeded", .state = SPEC_SUCCEEDED, .ending = true},
	{.name = "Failed", .state = SPEC_FAILED, .ending = true},
	{0},
};

static size_t read_job(const struct spec_reader *reader, const struct spec_value *object,
		       struct spec_job_view *v, struct spec_task_source **ret_tasks)
{
	const struct spec_value *spec = spec_read_map(object, "spec");
	size_t n = wrap_tasks(spec_read_list(spec, "components"), "template", v, ret_tasks);

	/*
	 * A suspended job whose pods have all succeeded is not over: the controller deletes the
	 * pods, and creates them again later.
	 */
	v->acts_on_success = spec_read_bool(spec, "suspend");
	v->minimum = (unsigned)min_of(n, (size_t)INT32_MAX);
	return n;
}

/* Return the phase; for a finished job that is being deleted, the final phase. */
static const char *phase_of(const struct spec_value *status)
{
	const char *phase = spec_read_text(status, "phase");
	const char *ended = spec_read_text(spec_view_condition(status, "QuotaReserved"), "reason");

	return streq(phase, "Terminating") && (streq(ended, "Succeeded") || streq(ended, "Failed"))
		       ? ended
		       : phase;
}

/*
 * Return the time when the phase began, or 0 if unknown. If no condition is for the phase, return
 * the time of the last change of any condition.
 */
static int64_t changed(const struct spec_value *status)
{
	const struct spec_value *quota = spec_view_condition(status, "QuotaReserved");
	const struct spec_value *unhealthy = spec_view_condition(status, "Unhealthy");
	const char *phase = phase_of(status);

	/*
	 * A finished job releases its quota, so the condition QuotaReserved has the time of its
	 * end. Other conditions still change later, during cleanup.
	 */
	if (quota && streq(spec_read_text(quota, "reason"), phase))
		return spec_read_time(quota, "lastTransitionTime");
	/*
	 * These phases begin a minute after a pod failed. No condition has the time of the failure,
	 * so return 0.
	 */
	if ((streq(phase, "Failed") || streq(phase, "Resetting")) &&
	    streq(spec_read_text(unhealthy, "reason"), "FoundFailedPods"))
		return 0;
	return spec_view_changed(status);
}

/* Return the time when the current attempt began, or INT64_MAX between two attempts. */
static int64_t began(const struct spec_value *status, const char *phase)
{
	const struct spec_value *deployed = spec_view_condition(status, "ResourcesDeployed");
	int64_t ret = spec_read_time(deployed, "lastTransitionTime");

	if (streq(phase, "Resetting") || (deployed && !spec_view_is_true(deployed)))
		return INT64_MAX;
	return max_of(ret, INT64_C(1));
}

static void read_status(const struct spec_reader *reader, const struct spec_value *object,
			struct spec_job_view *v)
{
	const struct spec_value *status = spec_read_map(object, "status");
	const struct spec_value *notes =
		spec_read_map(spec_read_map(object, "metadata"), "annotations");
	int retries = spec_read_digits(spec_read_text(notes, APPWRAPPER_RETRIES));
	const char *phase = phase_of(status);
	const struct spec_value *unhealthy = spec_view_condition(status, "Unhealthy");

	spec_read_copy(&v->queue, spec_read_text(spec_view_labels(object), SPEC_KUEUE_QUEUE),
		       READ_MAX_WORD);
	v->owned = *v->meta.owner_uid;
	v->asked =
		spec_read_bool(spec_read_map(object, "spec"), "suspend") && !*v->queue && !v->owned;
	v->max_retries = retries < 0 ? DEFAULT_RETRIES : (unsigned)retries;
	v->restarts = v->max_retries > 0;
	v->retries = (unsigned)spec_read_int(status, "resettingCount", 0);
	v->changed = changed(status);
	v->began = began(status, phase);
	spec_read_copy(&v->phase, phase, READ_MAX_WORD);
	/* These reasons are not visible in pods. */
	if (streq(phase, "Suspended") && *v->queue) {
		spec_job_view_queued(v, v->queue);
	} else if ((streq(phase, "Failed") || streq(phase, "Resetting")) &&
		   spec_view_is_true(unhealthy) &&
		   !streq(spec_read_text(unhealthy, "reason"), "FoundFailedPods")) {
		spec_read_copy_word(&v->reason, unhealthy, "reason");
		spec_read_copy_message(&v->message, unhealthy);
	}
}

const struct spec_reader spec_appwrapper_reader = {
	.job = read_job,
	.status = read_status,
	.of_group = "workload.codeflare.dev/",
	.of_kind = "AppWrapper",
	.pod = wrap_pod,
	.phases = phases,
	.pods_decide = SPEC_PODS_DECIDE_NOTHING,
	.again = "The AppWrapper controller restarts the whole job in about a minute.",
	.impatient = true,
};

/* --- making --- */

static const struct spec_option options[] = {
	{.name = "queue", .type = SPEC_OPTION_NAME, .help = "Kueue queue for the jobs"},
	WRAP_OPTIONS,
	POD_NO_ANNOTATIONS_OPTION,
	{0},
};

/*
 * Make a component from OBJECT. Old versions of the controller require that a component lists the
 * pods of its object.
 */
static struct json_object *make_component(struct json_object *object)
{
	struct json_object *component = spec_tree_map(), *sets = spec_tree_list(1);

	if (streq(json_object_get_string(json_object_object_get(object, "kind")), "Pod")) {
		struct json_object *set = spec_tree_map();

		spec_tree_number(set, "replicas", 1);
		spec_tree_text(set, "path", "template");
		spec_tree_append(sets, set);
	}
	spec_tree_add(component, "podSets", sets);
	spec_tree_add(component, "template", object);
	return component;
}

static struct json_object *make_object(struct spec_pods *p)
{
	const struct spec_build *b = p->build;
	const char *queue = spec_options_text(b->options, "queue");
	struct json_object *spec = spec_tree_map(), *notes = spec_tree_map(), *metadata;
	struct json_object *ret = spec_build_object(b, b->kind->api_version, b->kind->kind,
						    spec_tree_string(b->id), &metadata);

	if (queue && *queue)
		spec_build_queue(b, spec_tree_add(metadata, "labels", spec_tree_map()));
	/* Without the annotation, the controller would use its default. */
	spec_tree_add(notes, APPWRAPPER_RETRIES,
		      spec_tree_format("%lld", (long long)spec_pods_least_retries(b->app)));
	spec_tree_add(metadata, "annotations", notes);
	spec_tree_add(spec, "components", json_object_get(p->parts));
	spec_tree_add(ret, "spec", spec);
	return ret;
}

static int appwrapper_build(struct spec_build *b)
{
	return wrap_build(b, make_component, make_object);
}

const struct spec_kind spec_appwrapper = {
	.name = "appwrapper",
	.source = "mcad",
	.jobs = "AppWrappers",
	.also = "mcad",
	.scheduler = "kubernetes_mcad",
	.api_version = "workload.codeflare.dev/v1beta2",
	.kind = "AppWrapper",
	.plural = "appwrappers",
	.pod_selector = "workload.codeflare.dev/appwrapper",
	.templates = (const struct spec_template[]){{"spec.components", "template"}, {0}},
	.in_kueue = true,
	.options = options,
	.build = appwrapper_build,
	.reader = &spec_appwrapper_reader,
	.control = &suspend_control,
	.suspend = "suspend",
};
