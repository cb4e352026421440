/* SPDX-License-Identifier: MIT */
/*
 * One run of the daemon: makes and ends the modules in order, and reports each step to the user,
 * systemd and the state directory.
 *
 * The folder: run.c owns the state directory (state.h), the loop, the backend, the tables of
 * fs/vfs, fs/submit and fs/tree, and the FUSE session (session.h). mountpoint.h checks mount points
 * and identifies mounts. daemon.h forks, and reports to the shell and systemd whether the child is
 * up.
 */
#pragma once

#include "backend/backend.h"
#include "fs/cli/options.h"

/*
 * Mount with the options O, or read-only if the disk of the state directory is read-only, and serve
 * until the end. Return the exit status.
 */
int run(struct options *o);
/* Return the configuration of the backend that O describes; its pointers are borrowed from O. */
struct backend_config run_config(const struct options *o);
