/* SPDX-License-Identifier: MIT */
/* queues/: one directory a queue of the cluster. */
#ifndef KXFS_FS_QUEUES_H
#define KXFS_FS_QUEUES_H

#include "fs/node.h"

extern const struct node_class queues_class;

/* Are there queues that can be shown? Decides whether queues/ is there. */
bool queues_are_known(struct fs *fs, struct node *dir);

#endif
