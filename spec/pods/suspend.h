/* SPDX-License-Identifier: MIT */
/*
 * ctl on kinds whose jobs are suspended and resumed by spec.suspend. If the job is in a queue of Kueue, that field
 * belongs to Kueue, which undoes what others write there; then ctl sets spec.active of the job's Workload. Kueue also
 * heeds labels of the job, which say in which queue it waits, and with which priority.
 */
#pragma once

#include "spec/view/control.h"

#define SUSPEND_KNOWN                                                                              \
	(1u << SPEC_SUSPEND | 1u << SPEC_RESUME | 1u << SPEC_QUEUE | 1u << SPEC_PRIORITY)

/* The functions of struct spec_control. */
unsigned suspend_actions(const struct spec_control_job *job);
int suspend_refusal(const struct spec_control_job *job, enum spec_action action,
		    const char **ret_why);
enum spec_control_outcome suspend_outcome(enum spec_action action,
					  const struct spec_control_mark *before,
					  const struct spec_control_job *now);
/*
 * Make the patch of the job that ASKED is about, or of its Workload. The uid in it tells the server which object of
 * this name is meant.
 */
void suspend_request(const struct spec_control_asked *asked, struct spec_control_request *ret);
/*
 * Make the patch that sets FIELD, a path below spec ("runPolicy.suspend"), of that job to VALUE (JSON), if the job is
 * still as it was read.
 */
void suspend_patch(struct spec_control_request *ret, const struct spec_control_asked *asked,
		   const char *field, const char *value);
