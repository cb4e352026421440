/* SPDX-License-Identifier: MIT */
/*
 * One run of kxfs. It owns the state directory (state.h), the loop, the backend, the objects of
 * fs/vfs, fs/submit and fs/tree, and the FUSE session (session.h). It reports each step to the
 * user, to systemd and in the state directory. mountpoint.h checks mount points and finds mounts.
 * daemon.h forks.
 */
#pragma once

#include "backend/backend.h"
#include "fs/cli/options.h"

/*
 * Mount with the options O, and serve until the mount ends. For kxfs capture, capture until a
 * signal arrives. Return the exit status.
 */
int run(struct options *o);
/* Return the backend's configuration. Its pointers are borrowed from O. */
struct backend_config run_config(const struct options *o);
