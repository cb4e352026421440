/* SPDX-License-Identifier: MIT */
/*
 * Actions of ctl for kinds whose jobs have a field spec.suspend. In a queue of Kueue, Kueue owns
 * this field and reverts changes by others, so ctl sets spec.active of the job's Workload instead.
 * Kueue reads the queue and the priority from labels of the job.
 *
 * An action is a patch of the job or of its Workload. The patch contains the object's uid, so the
 * server refuses it if a new object has replaced the old one under the same name.
 */
#pragma once

#include "spec/view/control.h"

/* For kinds with the member SUSPEND. */
extern const struct spec_control suspend_control;
/* For kinds that also have the member TERMINATE. */
extern const struct spec_control suspend_or_terminate_control;
