/* SPDX-License-Identifier: MIT */
/*
 * Dry runs: the object that a document would make, as YAML, with nothing launched. Behind
 * kxfs --dry-run=FILE, which needs neither a mount nor a cluster, and behind dryrun/ in a mount.
 */
#ifndef KXFS_FS_DRY_RUN_H
#define KXFS_FS_DRY_RUN_H

#include "spec/app.h"

struct options;

struct dry_run {
	const char *backend;	      /* "local", "volcano", "mcad"; "": what the document says */
	const char *namespace;	      /* of a cluster */
	const struct spec_pair *args; /* run options */
	size_t n_args;
	const char *file; /* for messages and the record */
	const char *submitter;
	const char *home;     /* NULL: unknown */
	const char *work_dir; /* where local jobs run */
};

/*
 * The manifest of a document, *RET (malloc'ed); of a local job, its record. A document for local:
 * that names another scheduler gives that one's manifest. Or a negative errno, with what is wrong
 * in *RET_TEXT (malloc'ed, lines; NULL: no memory).
 */
int dry_run_make(const struct dry_run *d, const char *text, size_t len, char **ret, size_t *ret_len,
		 char **ret_text);

/* kxfs --dry-run: the manifest to standard output. Returns the status to exit with. */
int dry_run_main(const struct options *o);

#endif
