/* SPDX-License-Identifier: MIT */
/*
 * The rights that a mount asks of a cluster, and what is missed without each. contrib/rbac.yaml gives these and no
 * others, which a test compares.
 */
#pragma once

#include "spec/pods/kind.h"

/* Plain data; texts are static, or those of a kind. */
struct spec_right {
	char group[128];      /* the group of the API; "": the core */
	const char *resource; /* "pods/log" */
	const char *verbs[4]; /* ends with NULL */
	bool jobs;	      /* without it jobs of a kind are not shown */
	bool cluster;	      /* the resource is in no namespace */
	const char *cost;     /* what is missed without it; NULL: without it there is no mount */
};

/* The rights that a mount of the N KINDS uses, *RET_N of them; those that it can't do without come first. malloc'ed. */
struct spec_right *spec_rights(const struct spec_kind *const *kinds, size_t n, size_t *ret_n);
/* What is missed if RESOURCE can't be listed and watched; NULL: there is no mount then. Static. */
const char *spec_right_cost(const char *resource);
