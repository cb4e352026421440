/* SPDX-License-Identifier: MIT */
/*
 * The parts of a pod that all replicas of a role share: image, resources, ports, volumes, node
 * selector. A part of pod.c in a file of its own.
 */
#ifndef KXFS_SPEC_POD_PARTS_H
#define KXFS_SPEC_POD_PARTS_H

#include "spec/pod.h"

/* Fill R's image, container and spec. 0, or an errno that is in the build's errors. */
int pod_parts_make(struct spec_pod_role *r);

#endif
