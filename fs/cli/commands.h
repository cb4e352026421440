/* SPDX-License-Identifier: MIT */
/* Commands that need neither a mount nor a cluster, and the kind files of the user, kxfs-kind(5). */
#pragma once

#include "fs/cli/options.h"

/*
 * Add the kinds of all files DIR/NAME.yaml to KINDS, in the order of their names. Return 0, or a
 * negative errno with *RET_TEXT (malloc'ed): all errors of the first file that has any.
 */
int kind_files_add(struct spec_kinds *kinds, const char *dir, char **ret_text);
/*
 * Check the file of --check-kind. If an object's file is given, print the status that kxfs would
 * show for that object. Return the exit status.
 */
int kind_files_check(const struct options *o);

/*
 * Convert the file of --dry-run to a manifest. Print it to standard output, or errors to standard
 * error. Return the exit status.
 */
int dry_run_main(const struct options *o);

/*
 * Print the rights that a mount with O needs: a Role, and a ClusterRole for resources outside of
 * namespaces. kxfs does not ask the cluster, so the Role covers all kinds that SOURCE may refer to.
 */
void rbac_print(const struct options *o, FILE *out);
