/* SPDX-License-Identifier: MIT */
/*
 * Finds what the API server would refuse in a role's pods, or never start, so that an error names the place in the
 * document. Private to pod.c.
 */
#pragma once

#include "spec/pods/pod.h"

#define POD_FIELD_PATH "[FIELD_PATH]" /* a value that begins so names a field of the pod */
#define POD_GPU	       "nvidia.com/gpu"

/* Check R's mounts, devices and variables. 0, or an errno that is in the build's errors. */
int pod_check(struct spec_pod_role *r);
