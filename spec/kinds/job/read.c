/* SPDX-License-Identifier: MIT */
/*
 * Batch Jobs, whoever made them. A Job has no phase but conditions, of which a phase is made here. All its pods are one
 * task, called as their container is. Where the Job numbers its pods (Indexed) a pod's index is its replica; else
 * pods become replicas as they are made (spec/view/place.c).
 */
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/indexed.h"

/* Kubernetes' own, where a Job made by an old server does not say. */
#define DEFAULT_RETRIES 6

static const struct spec_phase phases[] = {
	{.name = "Suspended",
	 .state = SPEC_CANCELLED,
	 .ending = true,
	 .suspended = true,
	 .asked = true},
	{.name = "Suspended", .state = SPEC_PENDING},
	{.name = "Running", .state = SPEC_RUNNING, .by_pods = true},
	{.name = "SuccessCriteriaMet", .state = SPEC_RUNNING},
	{.name = "Complete", .state = SPEC_SUCCEEDED, .ending = true},
	{.name = "FailureTarget", .state = SPEC_RUNNING, .ending = true},
	{.name = "Failed", .state = SPEC_FAILED, .ending = true},
	{.name = "Terminating", .state = SPEC_RUNNING, .ending = true},
	{.name = "Terminated", .state = SPEC_FAILED, .ending = true},
	{0},
};

static const struct spec_value *spec_of(const struct spec_value *object)
{
	return spec_read_map(object, "spec");
}

static size_t read_job(const struct spec_value *object, struct spec_job_view *v,
		       struct spec_task_source **ret_tasks)
{
	const struct spec_value *spec = spec_of(object);
	const struct spec_value *template = spec_read_map(spec, "template");
	int pods = spec_read_int(spec, "completions", -1);
	int alone = spec_read_int(spec, "backoffLimitPerIndex", -1);

	if (pods < 0)
		pods = spec_read_int(spec, "parallelism", 1);
	*ret_tasks = new0_n(struct spec_task_source, 1);
	(*ret_tasks)[0] = (struct spec_task_source){
		.name = spec_pod_choose_main(template, ""),
		.role = "",
		.replicas = (unsigned)pods,
		.minimum = (unsigned)pods,
		.time_limit = spec_view_time_limit(template),
	};
	v->hidden = pods > SPEC_MAX_REPLICAS;
	v->alone = alone >= 0;
	v->max_retries =
		(unsigned)(v->alone ? alone : spec_read_int(spec, "backoffLimit", DEFAULT_RETRIES));
	v->retry_limit = v->alone ? 0 : v->max_retries + 1;
	v->restarts = v->max_retries > 0;
	spec_read_copy_word(&v->app, spec_view_labels(template), "torchx.pytorch.org/app-name");
	return 1;
}

/* --- what follows from the status --- */

/* Has ctl ended it? Nobody else does by a deadline of 0 s. */
static bool is_terminated(const struct spec_value *object, const struct spec_value *condition)
{
	return streq(spec_read_text(condition, "reason"), "DeadlineExceeded") &&
	       spec_read_int(spec_of(object), "activeDeadlineSeconds", -1) == 0;
}

/* Why it has failed, or is about to. */
static void explain(struct spec_job_view *v, const struct spec_value *object,
		    const struct spec_value *failed)
{
	const struct spec_value *status = spec_read_map(object, "status");
	const char *reason = spec_read_text(failed, "reason");
	const char *indexes = spec_read_text(status, "failedIndexes");
	cleanup_free char *text = text_print("%s%s%s", spec_read_text(failed, "message"),
					     *indexes ? ": " : "", indexes);

	spec_read_copy(&v->reason, reason, READ_MAX_WORD);
	spec_read_copy(&v->message, text, READ_MAX_MESSAGE);
	/* Any other reason only says that pods have failed. */
	v->vague = !streq(reason, "DeadlineExceeded") && !streq(reason, SPEC_REASON_FAILURE_POLICY);
	v->used_up = streq(reason, "BackoffLimitExceeded");
	if (!is_terminated(object, failed))
		return;
	spec_set(&v->phase, streq(v->phase, "Failed") ? "Terminated" : "Terminating");
	spec_set(&v->reason, "Terminated");
	spec_set(&v->message, "it was terminated through ctl");
}

static void read_status(const struct spec_value *object, struct spec_job_view *v)
{
	/* Of the types that hold the last that was added counts. */
	static const char *const types[] = {"Complete",		  "Failed",    "FailureTarget",
					    "SuccessCriteriaMet", "Suspended", NULL};
	const struct spec_value *status = spec_read_map(object, "status");
	const struct spec_value *met = indexed_condition(status, "SuccessCriteriaMet");
	const char *phase = indexed_phase(status, types);
	int failed = spec_read_int(status, "failed", 0);

	indexed_status(v, object, phase);
	if (streq(phase, "Failed") || streq(phase, "FailureTarget"))
		explain(v, object, indexed_condition(status, phase));
	/* The job is over although not all have succeeded; else there is nothing to explain. */
	if (met && streq(spec_read_text(met, "reason"), "SuccessPolicy")) {
		spec_set(&v->reason, "SuccessPolicy");
		spec_read_copy_message(&v->message, met);
	}
	v->retries = v->alone ? 0 : (unsigned)failed;
	/* A policy may know exit codes after which there is no other try. */
	v->remakes = v->restarts && (v->alone || v->retries <= v->max_retries) &&
		     !spec_read_map(spec_of(object), "podFailurePolicy");
}

static void read_pod(const struct spec_value *object, struct spec_pod_view *v)
{
	/* A role's container has its name; a webhook may have put another one before it. */
	const char *role = spec_read_text(spec_view_labels(object), "torchx.pytorch.org/role-name");

	indexed_pod(object, v);
	v->retry = SPEC_RETRY_UNKNOWN;
	spec_read_copy(&v->main, spec_pod_choose_main(object, role), READ_MAX_WORD);
}

const struct spec_reader spec_job_reader = {
	.job = read_job,
	.status = read_status,
	.of_group = "batch/",
	.of_kind = "Job",
	.pod = read_pod,
	.phases = phases,
	.remade = true,
	.recounted = true,
};
