/* SPDX-License-Identifier: MIT */
/*
 * Finds parts of a role's pods that the API server would refuse, or that would never start, so that
 * an error names the position in the document. Private to pod.c.
 */
#pragma once

#include "spec/pods/pod.h"

#define POD_FIELD_PATH "[FIELD_PATH]" /* a value with this prefix names a field of the pod */
#define POD_GPU	       "nvidia.com/gpu"

/* Check R's mounts, devices and variables. Return 0, or an errno after adding to the build's errors. */
int pod_check(struct spec_pod_role *r);
