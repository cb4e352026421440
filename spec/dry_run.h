/* SPDX-License-Identifier: MIT */
/*
 * Dry runs: the object that a document would make, as YAML, with nothing launched. Behind
 * kxfs --dry-run=FILE, which needs neither a mount nor a cluster, and behind dryrun/ in a mount of
 * local jobs. Pure: chance and time are parameters.
 */
#ifndef KXFS_SPEC_DRY_RUN_H
#define KXFS_SPEC_DRY_RUN_H

#include "spec/app.h"

struct spec_dry_run {
	const char *backend;   /* "local", "volcano", "mcad"; "": what the document says */
	const char *namespace; /* of a cluster; "": "default" */
	/* Run options. With local:, those that the document's own kind does not have do not count. */
	const struct spec_pair *args;
	size_t n_args;
	const char *file; /* for messages and the record */
	const char *submitter;
	const char *home;	  /* NULL: unknown */
	const char *work_dir;	  /* where local jobs run */
	int64_t now;		  /* ns since 1970 */
	unsigned char random[48]; /* for names and ids */
};

/*
 * The manifest of a document, *RET (malloc'ed); of a local job, its record. What a document for
 * local: says of another scheduler, or is as a ready manifest, gives that one's manifest. 0, or the
 * errno of E, which then says what is wrong.
 */
int spec_dry_run(const struct spec_dry_run *d, const char *text, size_t len, char **ret,
		 size_t *ret_len, struct spec_errors *e);

#endif
