/* SPDX-License-Identifier: MIT */
/*
 * Becomes a daemon in two steps: forks before anything has a thread, and lets go of the terminal only when all is well.
 * Between the two the child's messages reach the user; the parent waits until the child says whether it is up, and
 * makes that the command's exit status.
 */
#pragma once

#include "spec/base/base.h"

struct daemon {
	int up_fd; /* -1: in the foreground */
};

#define DAEMON_INIT ((struct daemon){.up_fd = -1})

/*
 * To be called first of all. Afterwards descriptors 0 to 2 are open, and SIGPIPE is ignored. Descriptors that the
 * caller forgot to close are closed, since a daemon must not keep a shell's pipe open, nor hand it to jobs. KEEP (-1:
 * none), which the caller did not forget, stays open, and is closed at an exec.
 */
void daemon_prepare(int keep);

/*
 * Fork. Returns 0 in the child. Returns 1 in the parent, when the child has come up or failed, with *RET_STATUS to exit
 * with. A negative errno: there is no child. SIGINT, SIGTERM or SIGHUP to the parent ends the child by SIGTERM and,
 * when the child has gone, the parent itself; a second such signal does not wait for the child. These signals are
 * blocked in the child. Until daemon_ready the child gets SIGTERM also when the parent is killed, since nobody waits
 * for it any more.
 */
int daemon_fork(struct daemon *d, int *ret_status);

/*
 * All is well: leave the parent's terminal, session and directory, and let the parent end with success. -EPIPE: the
 * parent is gone, so nobody wants this process any more. In the foreground only the directory is left.
 */
int daemon_ready(struct daemon *d);
