/* SPDX-License-Identifier: MIT */
/* Removes a test's own directory, with its contents. */
#pragma once

#include <ftw.h>
#include <stdio.h>

static inline int scratch_remove_one(const char *path, const struct stat *st, int type,
				     struct FTW *ftw)
{
	return remove(path);
}

/* Return 0, or -1 if something is left. */
static inline int scratch_remove(const char *dir)
{
	return nftw(dir, scratch_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
