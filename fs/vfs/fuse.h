/* SPDX-License-Identifier: MIT */
/* libfuse's low-level API at the version that kxfs is written for: include this, never it. */
#ifndef KXFS_FS_VFS_FUSE_H
#define KXFS_FS_VFS_FUSE_H

#define FUSE_USE_VERSION 310
#include <fuse_lowlevel.h>
#include <stdbool.h>

/* Need the closing of this file be asked for? Where libfuse can't say so, it is asked for, and ops_flush answers. */
static inline void fuse_set_noflush(struct fuse_file_info *fi, bool on)
{
#if KXFS_FUSE_NOFLUSH
	fi->noflush = on;
#else
	(void)fi, (void)on;
#endif
}

#endif
