/* SPDX-License-Identifier: MIT */
/*
 * The command kxfs --dry-run=FILE: print the manifest that a file would make, without a mount or a
 * cluster.
 */
#pragma once

struct options;

/* Print the manifest to standard output, or errors to standard error. Return the exit status. */
int dry_run_main(const struct options *o);
