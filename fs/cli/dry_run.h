/* SPDX-License-Identifier: MIT */
/* The command kxfs --dry-run=FILE: the manifest that a file would make, without a mount or a cluster. */
#ifndef KXFS_FS_CLI_DRY_RUN_H
#define KXFS_FS_CLI_DRY_RUN_H

struct options;

/* The manifest to standard output, or what is wrong to standard error. Returns the status to exit with. */
int dry_run_main(const struct options *o);

#endif
