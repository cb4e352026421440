/* SPDX-License-Identifier: MIT */
/* Commands that need neither a mount nor a cluster, and the user's kind files (kxfs-kind(5)). */
#pragma once

#include "fs/cli/options.h"

/*
 * Add to KINDS a kind for each YAML file in DIR, in the order of the file names. Return 0, or a
 * negative errno with all errors of the first bad file in *RET_TEXT, malloc'ed.
 */
int kind_files_add(struct spec_kinds *kinds, const char *dir, char **ret_text);
/*
 * --check-kind: check a kind file. If the command line also names a file with a job's object, print
 * the status that kxfs would show for that job. Return the exit status.
 */
int kind_files_check(const struct options *o);

/* --dry-run: print the manifest of a file, or its errors. Return the exit status. */
int dry_run_main(const struct options *o);

/*
 * doctor --rbac: print a Role with the rights that a mount needs, and a ClusterRole for resources
 * without a namespace. kxfs does not ask the cluster, so the rights cover all kinds that SOURCE may
 * show.
 */
void rbac_print(const struct options *o, FILE *out);
