/* SPDX-License-Identifier: MIT */
/* The command kxfs --dry-run=FILE: prints the manifest that a file would make, without a mount or a cluster. */
#pragma once

struct options;

/* Print the manifest to standard output, or what is wrong to standard error. Returns the status to exit with. */
int dry_run_main(const struct options *o);
