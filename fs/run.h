/* SPDX-License-Identifier: MIT */
/*
 * One run of the daemon, from the options to the last free: which module is made when, who ends
 * first, and what the outside (the user, systemd, the state directory) is told at each step.
 */
#ifndef KXFS_FS_RUN_H
#define KXFS_FS_RUN_H

#include "fs/options.h"

/* Mount as O says and serve until the end. What to exit with. */
int run(const struct options *o);

#endif
