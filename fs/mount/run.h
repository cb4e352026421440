/* SPDX-License-Identifier: MIT */
/*
 * One run of the daemon. It makes the modules, ends them in reverse order, and reports each step to
 * the user, to systemd and in the state directory.
 *
 * In this folder, run.c owns the state directory (state.h), the loop, the backend, the objects of
 * fs/vfs, fs/submit and fs/tree, and the FUSE session (session.h). mountpoint.h checks mount points
 * and identifies mounts. daemon.h forks, and reports to the shell and to systemd whether the child
 * is up.
 */
#pragma once

#include "backend/backend.h"
#include "fs/cli/options.h"

/*
 * Mount with the options O, and serve until the mount ends. If the action is kxfs capture, capture
 * until a signal ends the run instead. If the disk of the state directory is read-only, mount
 * read-only. Return the exit status.
 */
int run(struct options *o);
/* Return the configuration of the backend for the options O. Its pointers are borrowed from O. */
struct backend_config run_config(const struct options *o);
