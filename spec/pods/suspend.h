/* SPDX-License-Identifier: MIT */
/*
 * The actions of ctl for jobs with a field spec.suspend. If a job is in a queue, Kueue reverts
 * other writers' changes of this field, so ctl sets spec.active of its Workload. Kueue reads the
 * queue and the priority from the job's labels.
 *
 * An action is a patch with the uid of the job or Workload, so that the server refuses it for a new
 * object of the same name.
 */
#pragma once

#include "spec/view/control.h"

/* For kinds that set spec_kind.suspend. */
extern const struct spec_control suspend_control;
/* For kinds that set spec_kind.suspend and spec_kind.terminate. */
extern const struct spec_control suspend_or_terminate_control;
