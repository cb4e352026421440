/* SPDX-License-Identifier: MIT */
/*
 * ctl for kinds whose jobs are suspended and resumed by spec.suspend. If the job is in a queue of
 * Kueue, Kueue owns that field and reverts other writes; then ctl sets spec.active of the job's
 * Workload. Kueue also reads labels of the job with its queue and its priority.
 */
#pragma once

#include "spec/view/control.h"

#define SUSPEND_KNOWN                                                                              \
	(1u << SPEC_SUSPEND | 1u << SPEC_RESUME | 1u << SPEC_QUEUE | 1u << SPEC_PRIORITY)

/* Functions for struct spec_control. */
unsigned suspend_actions(const struct spec_control_job *job);
/* The same, for kinds whose jobs can also be terminated by a field of their spec. */
unsigned suspend_or_terminate_actions(const struct spec_control_job *job);
int suspend_refusal(const struct spec_control_job *job, enum spec_action action,
		    const char **ret_why);
enum spec_control_outcome suspend_outcome(enum spec_action action,
					  const struct spec_control_mark *before,
					  const struct spec_control_job *now);
/*
 * Make the patch of ASKED's job, or of its Workload. The patch contains the object's uid, so that
 * the server refuses it if another object has the name now.
 */
void suspend_request(const struct spec_control_asked *asked, struct spec_control_request *ret);
