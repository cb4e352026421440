/* SPDX-License-Identifier: MIT */
/*
 * Converts a document to the object that kxfs sends to a cluster. An AppDef becomes an object of
 * one of the mount's kinds. A ready manifest (with apiVersion and kind) already is the object: kxfs
 * only checks it and removes some fields. Pure: random numbers are parameters.
 */
#pragma once

#include "spec/pods/kind.h"

/* The input of spec_manifest_make besides the document. Plain data. */
struct spec_manifest_request {
	/*
	 * The mount's kind. NULL on a mount of several kinds: kxfs then uses the kind in KINDS that
	 * the document names, else the first of KINDS that makes objects from AppDefs.
	 */
	const struct spec_kind *kind;
	const struct spec_kind *const *kinds;
	size_t n_kinds;
	const struct spec_kinds *known;	 /* all kinds, also those that this mount does not show */
	const struct spec_pair *options; /* from "-o key=value" */
	size_t n_options;
	const char *home; /* as in spec_app_rules */
	/* True for a mount with -o mine, which finds its jobs by the label SPEC_LABEL_USER. */
	bool mine;
	struct spec_identity identity;
};

struct spec_manifest {
	const struct spec_kind *kind;
	char *id;   /* the object's name */
	bool named; /* the document names it; otherwise, the name is random */
	char *json; /* on one line */
	size_t json_len;
	/* seconds until the cluster removes the finished object; -1 for never */
	int64_t ttl;
};

/*
 * Convert the document TEXT, and return 0 and the object. If there are errors, add them to E and
 * return their errno: -EFBIG if the object has more than SPEC_MAX_OBJECT bytes.
 */
int spec_manifest_make(const char *text, size_t len, const struct spec_manifest_request *rq,
		       struct spec_manifest **ret, struct spec_errors *e);
void spec_manifest_free(struct spec_manifest *m);
define_cleanup(spec_manifest_freep, struct spec_manifest *, spec_manifest_free)

/* Return the object as YAML (malloc'ed). */
void spec_manifest_yaml(const struct spec_manifest *m, char **ret, size_t *ret_len);
