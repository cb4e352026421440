/* SPDX-License-Identifier: MIT */
/*
 * Converts the text of a document into the object that kxfs sends to a cluster. An AppDef becomes
 * an object of one of the mount's kinds. A ready manifest (with apiVersion and kind) already is the
 * object, so kxfs only checks it and removes some fields. Pure: randomness and all other input are
 * parameters.
 */
#pragma once

#include "spec/pods/kind.h"

/* The input of spec_manifest_make besides the document. Plain data. */
struct spec_manifest_request {
	/*
	 * The mount's kind. NULL on a mount of several kinds: kxfs then uses the kind in KINDS that
	 * the document names, else the first kind in KINDS that can make objects from AppDefs.
	 */
	const struct spec_kind *kind;
	const struct spec_kind *const *kinds;
	size_t n_kinds;
	/* All kinds that kxfs knows, even if this mount does not show them. */
	const struct spec_kinds *known;
	const struct spec_pair *options; /* the mount's run options: "-o key=value" */
	size_t n_options;
	const char *home; /* as in struct spec_app_rules */
	/*
	 * True for a mount with -o mine. Such a mount finds its jobs by the label SPEC_LABEL_USER,
	 * so kxfs sets this label in the objects.
	 */
	bool mine;
	struct spec_identity identity;
};

struct spec_manifest {
	const struct spec_kind *kind;
	char *id;   /* the object's name */
	bool named; /* true if the name is from the document; otherwise the name is random */
	char *json; /* the object as JSON on one line */
	size_t json_len;
	/* seconds from the object's end until the cluster removes it; -1 if the cluster does not */
	int64_t ttl;
};

/*
 * Convert the document TEXT to an object, and set *RET to the object. Return 0. If there are
 * errors, add them to E and return the errno of E. The errno is -EFBIG if the object has more than
 * SPEC_MAX_OBJECT bytes.
 */
int spec_manifest_make(const char *text, size_t len, const struct spec_manifest_request *rq,
		       struct spec_manifest **ret, struct spec_errors *e);
void spec_manifest_free(struct spec_manifest *m);
define_cleanup(spec_manifest_freep, struct spec_manifest *, spec_manifest_free)

/* Set *RET to the object as YAML, malloc'ed and NUL-terminated. */
void spec_manifest_yaml(const struct spec_manifest *m, char **ret, size_t *ret_len);
