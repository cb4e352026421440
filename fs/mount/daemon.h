/* SPDX-License-Identifier: MIT */
/*
 * Becomes a daemon in two steps. daemon_fork forks before any thread exists. daemon_ready leaves
 * the terminal when the start has succeeded. In between, the user sees the child's messages. The
 * parent waits until the child is up or has failed. The exit status of the parent shows which.
 *
 * Also notifies systemd, or another parent that has set NOTIFY_SOCKET, by the protocol of
 * sd_notify.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "spec/base/base.h"

/*
 * Call this first in main. Make sure that the descriptors 0 to 2 are open, ignore SIGPIPE, and
 * close all descriptors above 2. A daemon must not keep a pipe of its caller open, nor pass it to
 * jobs. If KEEP is not -1, leave the descriptor KEEP open, and make it close-on-exec.
 */
void daemon_prepare(int keep);

/*
 * Fork. In the child, set *RET_UP_FD to the pipe to the parent, and return 0. In the parent, wait
 * until the child is up or has failed, set *RET_STATUS to the exit status for the parent, and
 * return 1. If there is no child, return a negative errno.
 *
 * If the parent gets SIGINT, SIGTERM or SIGHUP, it sends SIGTERM to the child, waits for the
 * child's end, and dies from the signal. Another signal ends the parent immediately. If the parent
 * is killed before daemon_ready, the kernel sends SIGTERM to the child. The child starts with the
 * three signals blocked.
 */
int daemon_fork(int *ret_up_fd, int *ret_status);

/*
 * Leave the parent's terminal, session and working directory. Then report success through UP_FD,
 * and close UP_FD. The parent then exits. In the foreground UP_FD is -1: only change the working
 * directory. Return 0 or a negative errno. After -EPIPE this process must end, because the parent
 * was killed.
 */
int daemon_ready(int up_fd);

struct notify {
	struct sockaddr_un address;
	socklen_t len; /* length of ADDRESS; 0 if there is no socket */
};

/* Read NOTIFY_SOCKET, and remove it from the environment, so that jobs do not inherit it. */
void notify_init(struct notify *n);

/* Send a message such as "READY=1\nSTATUS=...". Never wait, and ignore errors. */
void notify_send(const struct notify *n, const char *fmt, ...) printf_like(2, 3);
