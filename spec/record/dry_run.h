/* SPDX-License-Identifier: MIT */
/*
 * Dry runs: the object that a document would become, as YAML, without launching anything. For kxfs
 * --dry-run=FILE, which needs neither a mount nor a cluster, and for dryrun/ in a mount of local
 * jobs. Pure: randomness and time are parameters.
 */
#pragma once

#include "spec/record/local.h"

/* A dry run. Plain data. */
struct spec_dry_run {
	const struct spec_kinds *kinds; /* the table of kinds */
	const char *backend;		/* "local", "volcano", "mcad"; "": the one in the
					 * document */
	const char *namespace;		/* namespace in a cluster; "": "default" */
	/* Run options. With local:, options that the document's kind lacks are ignored. */
	const struct spec_pair *args;
	size_t n_args;
	const char *file; /* name of the file, for messages and the record */
	const char *submitter;
	struct spec_machine machine;
	int64_t now;		  /* ns since 1970 */
	unsigned char random[48]; /* for names and ids */
};

/*
 * Make the manifest of a document, or the record of a local job: *RET, malloc'ed. Also with the
 * backend "local", a document that names another scheduler, or is a ready manifest, yields a
 * manifest of that kind. Return 0, or the errno of E, which then has the errors.
 */
int spec_dry_run(const struct spec_dry_run *d, const char *text, size_t len, char **ret,
		 size_t *ret_len, struct spec_errors *e);
