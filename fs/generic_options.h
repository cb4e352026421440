/* SPDX-License-Identifier: MIT */
/* The generic options of mount(8) on the command line, "-o nofail". */
#ifndef KXFS_FS_GENERIC_OPTIONS_H
#define KXFS_FS_GENERIC_OPTIONS_H

#include "fs/options.h"

#define GENERIC_OPTIONS_MAX 64

/* WORD is NAME or NAME=VALUE. 0; -ENOENT: there is no such option; or -ENOMEM. */
int generic_option_set(struct options *o, const char *word, const char *name);

/* Names of all, at most MAX of them; returns how many. */
size_t generic_option_names(const char **ret, size_t max);

#endif
