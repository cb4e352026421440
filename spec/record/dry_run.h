/* SPDX-License-Identifier: MIT */
/*
 * Dry runs: makes the YAML of the object that kxfs would create from a document. kxfs
 * --dry-run=FILE and dryrun/ of a local mount show it. Pure: randomness and time are parameters.
 */
#pragma once

#include "spec/record/local.h"

/* Plain data. */
struct spec_dry_run {
	const struct spec_kinds *kinds; /* all kinds that the user can name */
	const char *backend;   /* "local", "volcano", ...; if "", the document must name it */
	const char *namespace; /* in a cluster; "" means "default" */
	/* run options; with BACKEND "local", options that the document's kind lacks are ignored */
	const struct spec_pair *args;
	size_t n_args;
	const char *file; /* for messages and manifest.yaml */
	const char *submitter;
	struct spec_machine machine;
	int64_t now; /* ns since 1970 */
	struct {
		uint64_t name[2];
		unsigned char submission[16];
	} random; /* for names and ids */
};

/*
 * Set *RET (malloc'ed) to the manifest that kxfs would create from the document TEXT; for a local
 * job, to its manifest.yaml. If TEXT is a manifest, or an AppDef that names a cluster's scheduler,
 * the result is a manifest even if BACKEND is "local". Return 0, or the errno of the errors that
 * were added to E.
 */
int spec_dry_run(const struct spec_dry_run *d, const char *text, size_t len, char **ret,
		 size_t *ret_len, struct spec_errors *e);
