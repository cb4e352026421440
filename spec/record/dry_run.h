/* SPDX-License-Identifier: MIT */
/*
 * Makes dry runs: returns the object that a document would become, as YAML, without launching
 * anything. This is for kxfs --dry-run=FILE, which needs neither a mount nor a cluster, and for
 * dryrun/ in a mount of local jobs. Pure: randomness and time are parameters.
 */
#pragma once

#include "spec/record/local.h"

/* A dry run. Plain data. */
struct spec_dry_run {
	const struct spec_kinds *kinds; /* all kinds that the user can name */
	/* "local", "volcano", "mcad"; "" to use the one that the document names */
	const char *backend;
	const char *namespace; /* namespace in a cluster; "" means "default" */
	/* Run options. If BACKEND is "local", those that the document's kind lacks are ignored. */
	const struct spec_pair *args;
	size_t n_args;
	const char *file; /* name of the file, for messages and for the record */
	const char *submitter;
	struct spec_machine machine;
	int64_t now;		  /* ns since 1970 */
	unsigned char random[48]; /* for names and ids */
};

/*
 * Set *RET to the manifest that the document would become, or to the record of a local job,
 * malloc'ed. Even if BACKEND is "local", the document may be a ready manifest for a cluster, or may
 * name the scheduler of a cluster. In these cases, *RET is the manifest. Return 0, or the errno of
 * the errors that were added to E.
 */
int spec_dry_run(const struct spec_dry_run *d, const char *text, size_t len, char **ret,
		 size_t *ret_len, struct spec_errors *e);
