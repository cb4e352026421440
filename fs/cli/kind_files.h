/* SPDX-License-Identifier: MIT */
/* Kind files of the user, kxfs-kind(5): -o kinds=DIR, and the command kxfs --check-kind=FILE. */
#pragma once

struct options;
struct spec_kinds;

/*
 * Add the kinds of all files DIR/NAME.yaml to KINDS, in the order of their names. Return 0, or a
 * negative errno with *RET_TEXT (malloc'ed): all errors of the first file that has any.
 */
int kind_files_add(struct spec_kinds *kinds, const char *dir, char **ret_text);
/*
 * Check the file of --check-kind. If an object's file is given, print what kxfs would show of that
 * object. Return the exit status.
 */
int kind_files_check(const struct options *o);
