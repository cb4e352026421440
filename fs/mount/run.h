/* SPDX-License-Identifier: MIT */
/*
 * One run of the daemon, from the options to the last free: which module is made when, which ends first, and what the
 * user, systemd and the state directory are told at each step.
 *
 * The folder: run.c owns the state directory (state.h), the loop, the backend, the tables of fs/vfs, fs/submit and
 * fs/tree, and the FUSE session (session.h, which knows its mount by mountinfo.h and checks mount points by
 * mountpoint.h). daemon.h forks and tells the shell whether the child is up, notify.h informs systemd.
 */
#pragma once

#include "backend/backend.h"
#include "fs/cli/options.h"

/*
 * Mount as O says, or read-only if the disk of the state directory is, and serve until the end. Returns what to exit
 * with.
 */
int run(struct options *o);
/* What O says of the backend; all is borrowed from O. */
struct backend_config run_config(const struct options *o);
