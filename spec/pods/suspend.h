/* SPDX-License-Identifier: MIT */
/*
 * Actions of ctl for kinds whose jobs have a field spec.suspend. If the job is in a queue of Kueue,
 * Kueue owns this field and reverts any change by others. So ctl sets spec.active of the job's
 * Workload instead. Kueue reads the queue and the priority from labels of the job.
 *
 * An action is a patch of the job or of its Workload. The patch contains the uid of the changed
 * object. If another object with the same name has replaced that object, the server refuses the
 * patch.
 */
#pragma once

#include "spec/view/control.h"

/* For kinds with the member SUSPEND. */
extern const struct spec_control suspend_control;
/* For kinds that also have the member TERMINATE. */
extern const struct spec_control suspend_or_terminate_control;
