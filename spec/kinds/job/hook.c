/* SPDX-License-Identifier: MIT */
/* The parts of a Job that share/kinds/job.yaml can't describe. */
#include "spec/base/mem.h"
#include "spec/base/read.h"
#include "spec/kinds/job/hook.h"
#include "spec/view/reader.h"

/* Set the reason for which the Job has failed, or is about to. */
static void explain(struct spec_job_view *v, const struct spec_value *status)
{
	const char *indexes = spec_read_text(status, "failedIndexes");
	cleanup_free char *text = text_print("%s%s%s", v->message, *indexes ? ": " : "", indexes);

	spec_read_copy(&v->message, text, READ_MAX_MESSAGE);
	v->used_up = streq(v->reason, "BackoffLimitExceeded");
	if (strncmp(v->phase, "Terminat", strlen("Terminat")) != 0)
		return;
	spec_set(&v->reason, "Terminated");
	spec_set(&v->message, "it was terminated through ctl");
}

void job_hook(const struct spec_value *object, struct spec_job_view *v)
{
	const struct spec_value *status = spec_read_map(object, "status");
	const struct spec_value *met = spec_view_condition(status, "SuccessCriteriaMet");

	if (*v->reason && !streq(v->phase, "Suspended"))
		explain(v, status);
	/*
	 * The job is over although not all pods have succeeded. Otherwise there is nothing to
	 * explain.
	 */
	if (spec_view_is_true(met) && streq(spec_read_text(met, "reason"), "SuccessPolicy")) {
		spec_set(&v->reason, "SuccessPolicy");
		spec_read_copy_message(&v->message, met);
	}
	/* Its controller ends it, although the condition for that is not set yet. */
	v->over |= streq(v->phase, "SuccessCriteriaMet");
	/* A policy may name exit codes after which the Job is not retried. */
	v->remakes = v->restarts && (v->alone || v->retries <= v->max_retries) &&
		     !spec_read_map(spec_read_map(object, "spec"), "podFailurePolicy");
}
