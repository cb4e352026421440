/* SPDX-License-Identifier: MIT */
/*
 * The rights that a mount needs in a cluster, and what users lack without each of them.
 * contrib/rbac.yaml grants exactly these; a test compares the two.
 */
#pragma once

#include "spec/pods/kind.h"

/* A right. Plain data; texts are static, or those of a kind. */
struct spec_right {
	char group[128];      /* the group of the API; "": the core */
	const char *resource; /* "pods/log" */
	const char *verbs[4]; /* ends with NULL */
	bool jobs;	      /* without it, jobs of a kind are not shown */
	bool cluster;	      /* the resource is not in a namespace */
	const char *cost;     /* what users lack without it; NULL: mounting fails without it */
};

/*
 * Return the rights that a mount of the N KINDS uses, *RET_N of them; the indispensable ones come
 * first. malloc'ed.
 */
struct spec_right *spec_rights(const struct spec_kind *const *kinds, size_t n, size_t *ret_n);
/*
 * Return what users lack if RESOURCE can't be listed and watched; NULL if mounting fails then.
 * Static.
 */
const char *spec_right_cost(const char *resource);
