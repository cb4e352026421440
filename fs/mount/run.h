/* SPDX-License-Identifier: MIT */
/*
 * One run of the daemon: make the modules and end them, in order. Report each step to the user,
 * systemd and the state directory.
 *
 * The modules of this folder: run.c owns the state directory (state.h), the loop, the backend, the
 * objects of fs/vfs, fs/submit and fs/tree, and the FUSE session (session.h). mountpoint.h checks
 * mount points and identifies mounts. daemon.h forks, and reports to the shell and systemd whether
 * the child is up.
 */
#pragma once

#include "backend/backend.h"
#include "fs/cli/options.h"

/*
 * Mount with the options O, and serve until the mount ends. For kxfs capture, capture until a
 * signal ends the run. If the disk of the state directory is read-only, mount read-only. Return the
 * exit status.
 */
int run(struct options *o);
/*
 * Return the backend's configuration according to the options O. Its pointers are borrowed from O.
 */
struct backend_config run_config(const struct options *o);
