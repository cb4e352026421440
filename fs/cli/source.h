/* SPDX-License-Identifier: MIT */
/*
 * SOURCE of the command line: [BACKEND:][CONTEXT/]NAMESPACE. BACKEND is the text before the first
 * ':' only if it names one; the last '/' splits CONTEXT from NAMESPACE, since names of contexts may
 * contain both.
 */
#pragma once

#include "spec/pods/kind.h"

struct source {
	char *backend;	 /* "" if not given */
	char *context;	 /* "" if not given */
	char *namespace; /* "" if not given */
};

/*
 * Parse TEXT. Return 0, or -EINVAL with *RET_TEXT (malloc'ed). The caller owns the texts of *RET in
 * both cases.
 */
int source_parse(const struct spec_kinds *kinds, const char *text, struct source *ret,
		 char **ret_text);

/* True if TEXT begins with a backend and a colon. */
bool source_has_backend(const struct spec_kinds *kinds, const char *text);

/*
 * Return the name of the I-th backend, without its colon: the kinds of a cluster, then local. NULL
 * after the last.
 */
const char *source_backend_at(const struct spec_kinds *kinds, size_t i);
