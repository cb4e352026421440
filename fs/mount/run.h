/* SPDX-License-Identifier: MIT */
/*
 * One run of the daemon, from the options to the last free: which module is made when, who ends
 * first, and what the outside (the user, systemd, the state directory) is informed of at each step.
 *
 * The folder: run.c owns the state directory (state.h), the loop, the backend, the tables of fs/vfs, fs/submit and
 * fs/tree, and the FUSE session (session.h, which knows its mount by mountinfo.h and checks mount points by
 * mountpoint.h). daemon.h forks and brings the child's verdict to the shell, notify.h informs systemd.
 */
#pragma once

#include "fs/cli/options.h"

/* Mount as O says, or read-only where the state directory is, and serve until the end. What to exit with. */
int run(struct options *o);
