/* SPDX-License-Identifier: MIT */
/*
 * What pod.c (what pods share), pod_parts.c (the parts of a pod that all replicas of a role share: image,
 * resources, ports, volumes, node selector) and pod_replica.c share. Private to them.
 */
#ifndef KXFS_SPEC_POD_PARTS_H
#define KXFS_SPEC_POD_PARTS_H

#include "spec/pod.h"

#define POD_JOB_ID     "TORCHX_JOB_ID"
#define POD_RANK0_HOST "TORCHX_RANK0_HOST"

/* A variable of a container; NULL (and T->failed): no memory. */
struct json_object *pod_variable(struct spec_tree *t, const char *name, const char *value);

/* --- pod_parts.c --- */

/* Fill R's image, container and spec. 0, or an errno that is in the build's errors. */
int pod_parts_make(struct spec_pod_role *r);

#endif
