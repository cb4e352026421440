/* SPDX-License-Identifier: MIT */
/*
 * Runs the commands that need neither a mount nor a cluster. Also loads the user's kind files
 * (kxfs-kind(5)).
 */
#pragma once

#include "fs/cli/options.h"

/*
 * Read all files DIR/NAME.yaml, in the order of their names, and add their kinds to KINDS. Return
 * 0, or a negative errno with a message in *RET_TEXT, malloc'ed. The message has all errors of the
 * first file that has errors.
 */
int kind_files_add(struct spec_kinds *kinds, const char *dir, char **ret_text);
/*
 * --check-kind: check the kind file that the command line names. If the command line also names the
 * file of an object, print the status that kxfs would show for this object. Return the exit status.
 */
int kind_files_check(const struct options *o);

/*
 * --dry-run: convert the file that the command line names to a manifest. Print the manifest to
 * standard output, or errors to standard error. Return the exit status.
 */
int dry_run_main(const struct options *o);

/*
 * doctor --rbac: print the rights that a mount with the options O needs. Print them as a Role, and,
 * for resources that are not in a namespace, as a ClusterRole. kxfs does not contact the cluster,
 * so the Role covers all kinds that a mount of SOURCE might show.
 */
void rbac_print(const struct options *o, FILE *out);
