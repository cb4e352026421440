/* SPDX-License-Identifier: MIT */
/*
 * The rights that a mount uses in a cluster, and what users lack without each of them.
 * contrib/rbac.yaml grants exactly these rights; a test compares it with this table.
 */
#pragma once

#include "spec/pods/kind.h"

/* A right. Plain data. Its texts are static, or belong to a kind. */
struct spec_right {
	char group[128];      /* the API group; "" is the core group */
	const char *resource; /* "pods/log" */
	const char *verbs[4]; /* ends with NULL */
	/* true for a right to read a kind's jobs: without it, the mount does not show these jobs */
	bool jobs;
	bool cluster; /* true if the resource is cluster-wide, not in a namespace */
	/* What users lack without this right. NULL if mounting fails without it. */
	const char *cost;
};

/*
 * Return the rights that a mount of the N KINDS uses, malloc'ed. Set *RET_N to their number. The
 * rights without which mounting fails come first.
 */
struct spec_right *spec_rights(const struct spec_kind *const *kinds, size_t n, size_t *ret_n);
/*
 * Return what users lack without the right to list and watch RESOURCE. Return NULL if mounting
 * fails without this right. The text is static.
 */
const char *spec_right_cost(const char *resource);
