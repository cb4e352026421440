/* SPDX-License-Identifier: MIT */
/*
 * Macros in args and env values, by the grammar of Python's string.Template.safe_substitute: "$$"
 * is "$"; "$name" and "${name}" are replaced if known and left unchanged otherwise. One pass, no
 * recursion.
 */
#pragma once

#include "spec/base/base.h"

struct spec_macros {
	const char *app_id;
	const char *replica_id; /* decimal */
	const char *img_root;
	const char *base_img_root;
	const char *rank0_env; /* the name of the variable with rank 0's host */
};

/* Return TEXT with its macros replaced, malloc'ed. */
char *spec_macro_expand(const char *text, const struct spec_macros *m);
