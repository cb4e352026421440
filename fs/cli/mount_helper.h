/* SPDX-License-Identifier: MIT */
/*
 * kxfs as the helper of mount(8): under the name mount.kxfs it is given the words that every /sbin/mount.TYPE is given,
 * of which some letters mean other things than kxfs's own.
 */
#pragma once

#include "spec/base/base.h"

/* Is this how mount(8) calls its helper, by the program's name? */
bool mount_helper_is(const char *name);

/*
 * Make the words of kxfs's own command line that mean the same as the helper's ARGV; they end with NULL. The array is
 * malloc'ed, its texts are ARGV's. 0, or -EINVAL with *RET_TEXT (malloc'ed).
 */
int mount_helper_args(int argc, char **argv, int *ret_argc, char ***ret_argv, char **ret_text);
