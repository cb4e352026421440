/* SPDX-License-Identifier: MIT */
/*
 * Becoming a daemon in two steps: fork before anything has a thread, and let go of the terminal
 * only when all is well. Between them the child's messages reach the user; the parent waits for
 * its verdict and makes it the command's exit status.
 */
#pragma once

#include "spec/base/base.h"

struct daemon {
	int verdict_fd; /* -1: in the foreground */
};

#define DAEMON_INIT ((struct daemon){.verdict_fd = -1})

/*
 * First of all: descriptors 0 to 2 are open, those that the caller forgot to close are closed (a
 * daemon must not keep a shell's pipe open, nor hand it to jobs), SIGPIPE is ignored. KEEP (-1: none), which the caller
 * did not forget, stays open, and is closed at an exec.
 */
void daemon_prepare(int keep);

/*
 * Fork. In the child: 0. In the parent, once the child has come up or failed: 1, and *RET_STATUS
 * is what to exit with. A negative errno: there is no child. SIGINT, SIGTERM or SIGHUP to the parent ends the child
 * by SIGTERM and then, when the child has gone, the parent by itself; a second one does not wait for the child.
 * These signals are blocked in the child. Until daemon_ready it gets SIGTERM also when the parent is killed, for nobody
 * waits for it any more.
 */
int daemon_fork(struct daemon *d, int *ret_status);

/*
 * All is well: leave the parent's terminal, session and directory, and let it end with success. -EPIPE: the parent is
 * gone, nobody wants us any more. In the foreground only the directory is left.
 */
int daemon_ready(struct daemon *d);
