/* SPDX-License-Identifier: MIT */
/*
 * The rights that a mount asks of a cluster, and what is missed without each. contrib/rbac.yaml gives these and no
 * others, which a test compares.
 */
#pragma once

#include "spec/pods/kind.h"

struct spec_right {
	/* The kinds whose jobs need it; all NULL: those of any kind. */
	const struct spec_kind *kinds[3];
	const char *group;    /* the group of the API; "": the core */
	const char *resource; /* "pods/log" */
	const char *verbs[4]; /* ends with NULL */
	bool cluster;	      /* the resource is in no namespace */
	const char *cost;     /* what is missed without it; NULL: without it there is no mount */
};

/* The I-th right; NULL: there are no more. */
const struct spec_right *spec_right_at(size_t i);
/* What is missed if RESOURCE can't be listed and watched; NULL: there is no mount then. Static. */
const char *spec_right_cost(const char *resource);
bool spec_right_is_for(const struct spec_right *right, const struct spec_kind *kind);
