/* SPDX-License-Identifier: MIT */
/*
 * kxfs as the helper of mount(8): under the name mount.kxfs it gets the arguments of every
 * /sbin/mount.TYPE, where some letters differ from kxfs's own.
 */
#pragma once

#include "spec/base/base.h"

/* True if the program's name is the one by which mount(8) calls its helper. */
bool mount_helper_is(const char *name);

/*
 * Convert the helper's ARGV to kxfs's own command line, which ends with NULL. The array is
 * malloc'ed, its texts are ARGV's. Return 0, or -EINVAL with *RET_TEXT (malloc'ed).
 */
int mount_helper_args(int argc, char **argv, int *ret_argc, char ***ret_argv, char **ret_text);
