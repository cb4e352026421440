/* SPDX-License-Identifier: MIT */
/*
 * The rights that a mount uses in a cluster, and what users lack without them. A test compares
 * contrib/rbac.yaml, which grants these rights, with this table.
 */
#pragma once

#include "spec/pods/kind.h"

/* A right. Plain data. Its texts are static or belong to a kind. */
struct spec_right {
	char group[128];      /* "" is the core group */
	const char *resource; /* such as "pods/log" */
	const char *verbs[4]; /* terminated by NULL */
	/* True for reading a kind's jobs. Without this right, the mount does not show them. */
	bool jobs;
	bool cluster; /* true if the resource is not in a namespace */
	/* What users lack without this right; NULL if mounting fails. */
	const char *cost;
};

/* Return the rights for a mount of the N KINDS (malloc'ed), the indispensable ones first. */
struct spec_right *spec_rights(const struct spec_kind *const *kinds, size_t n, size_t *ret_n);
/* Return what users lack without the right to list and watch RESOURCE (static), or NULL. */
const char *spec_right_cost(const char *resource);
