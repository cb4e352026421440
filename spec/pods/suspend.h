/* SPDX-License-Identifier: MIT */
/*
 * Actions of ctl for kinds whose jobs have a field spec.suspend. If the job is in a queue of Kueue,
 * Kueue owns this field and reverts any change by others. So ctl sets spec.active of the job's
 * Workload instead. Kueue reads the queue and the priority from labels of the job.
 */
#pragma once

#include "spec/view/control.h"

#define SUSPEND_KNOWN                                                                              \
	(1u << SPEC_SUSPEND | 1u << SPEC_RESUME | 1u << SPEC_QUEUE | 1u << SPEC_PRIORITY)

/* These functions implement members of struct spec_control. */
unsigned suspend_actions(const struct spec_control_job *job);
/* Like suspend_actions, but for kinds with a field of the spec that terminates a job. */
unsigned suspend_or_terminate_actions(const struct spec_control_job *job);
int suspend_refusal(const struct spec_control_job *job, enum spec_action action,
		    const char **ret_why);
enum spec_control_outcome suspend_outcome(enum spec_action action,
					  const struct spec_control_mark *before,
					  const struct spec_control_job *now);
/*
 * Make the patch that performs the action ASKED. The patch changes the job or the job's Workload,
 * and contains the uid of the changed object. If another object with the same name has replaced
 * that object, the server refuses the patch.
 */
void suspend_request(const struct spec_control_asked *asked, struct spec_control_request *ret);
