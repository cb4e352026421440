/* SPDX-License-Identifier: MIT */
/* Commands that need neither a mount nor a cluster, and the user's kind files (kxfs-kind(5)). */
#pragma once

#include "fs/cli/options.h"

/*
 * Add the kinds that the files of DIR describe to KINDS, in the order of the names. Return 0, or a
 * negative errno with all errors of the first bad file in *RET_TEXT, malloc'ed.
 */
int kind_files_add(struct spec_kinds *kinds, const char *dir, char **ret_text);
/*
 * --check-kind: check a kind file. If the command line also names the file of an object, print the
 * status that kxfs would show. Return the exit status.
 */
int kind_files_check(const struct options *o);

/* --dry-run: print the manifest of a file, or its errors. Return the exit status. */
int dry_run_main(const struct options *o);

/*
 * doctor --rbac: print the rights that a mount needs as a Role and, for resources without a
 * namespace, a ClusterRole. kxfs does not ask the cluster, so they cover all kinds that SOURCE may
 * show.
 */
void rbac_print(const struct options *o, FILE *out);
