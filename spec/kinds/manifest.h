/* SPDX-License-Identifier: MIT */
/*
 * Converts the text of a document into the object that is sent to a cluster. An AppDef becomes an
 * object of a kind of the mount. A ready manifest (apiVersion and kind) is checked and passed on.
 * Pure: randomness and anything from outside are parameters.
 */
#pragma once

#include "spec/pods/kind.h"

/* The input besides the document. Plain data. */
struct spec_manifest_request {
	/*
	 * The mount's kind. NULL on a mount of several kinds: the document names one of them, else
	 * the first is used.
	 */
	const struct spec_kind *kind;
	const struct spec_kind *const *kinds;
	size_t n_kinds;
	const struct spec_kinds *known;	 /* all existing kinds */
	const struct spec_pair *options; /* the mount's run options: "-o key=value" */
	size_t n_options;
	const char *home; /* see spec_app_parse */
	bool mine; /* the mount finds its jobs by SPEC_LABEL_USER, so every object must have that label */
	struct spec_identity identity;
};

struct spec_manifest {
	const struct spec_kind *kind;
	char *id;   /* the object's name */
	bool named; /* the document gave the name; else it is random */
	char *json; /* the object, on one line */
	size_t json_len;
	int64_t ttl; /* seconds from the object's end until the cluster removes it; -1: it does not */
};

/*
 * Make the object of the document TEXT. Return 0 and *RET, or the errno of E, which then has the
 * errors: -EFBIG if the object is over SPEC_MAX_OBJECT.
 */
int spec_manifest_make(const char *text, size_t len, const struct spec_manifest_request *rq,
		       struct spec_manifest **ret, struct spec_errors *e);
void spec_manifest_free(struct spec_manifest *m);
define_cleanup(spec_manifest_freep, struct spec_manifest *, spec_manifest_free)

/* Write the object as YAML: *RET is malloc'ed and NUL-terminated. */
void spec_manifest_yaml(const struct spec_manifest *m, char **ret, size_t *ret_len);
