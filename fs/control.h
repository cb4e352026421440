/* SPDX-License-Identifier: MIT */
/* MOUNT/.kxfs: what the daemon says of itself. */
#ifndef KXFS_FS_CONTROL_H
#define KXFS_FS_CONTROL_H

#include "fs/node.h"

extern const struct node_class control_class;

/* What .kxfs/help shows (help.c): the tree, a line each. */
extern const char help_text[];

#endif
