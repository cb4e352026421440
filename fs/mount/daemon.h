/* SPDX-License-Identifier: MIT */
/*
 * Becomes a daemon in two steps. daemon_fork forks before any thread exists. daemon_ready detaches
 * from the terminal when the start has succeeded. Between the two steps, the user sees the child's
 * messages. The parent waits until the child is up or has failed, and its exit status shows which
 * of the two happened.
 *
 * Also notifies systemd, or any other parent that has set NOTIFY_SOCKET, by the protocol of
 * sd_notify.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "spec/base/base.h"

/*
 * Call this before anything else in main. Make sure that the descriptors 0 to 2 are open, ignore
 * SIGPIPE, and close all descriptors above 2 except KEEP (-1 for none). A daemon must not keep a
 * pipe of its caller open, nor pass it to jobs. KEEP becomes close-on-exec.
 */
void daemon_prepare(int keep);

/*
 * Fork. In the child, set *RET_UP_FD to the pipe to the parent, and return 0. In the parent, wait
 * until the child is up or has failed, set *RET_STATUS to the exit status of the parent, and return
 * 1. If no child could be made, return a negative errno.
 *
 * If the parent gets SIGINT, SIGTERM or SIGHUP, it sends SIGTERM to the child and waits for the
 * child's end. Then it ends itself with the signal that it has received. If the parent gets a
 * second signal, it ends without waiting. If the parent is killed before daemon_ready, the kernel
 * sends SIGTERM to the child. The child starts with SIGINT, SIGTERM and SIGHUP blocked.
 */
int daemon_fork(int *ret_up_fd, int *ret_status);

/*
 * Leave the parent's terminal, session and working directory. Then report success to the parent
 * through UP_FD, and close UP_FD. The parent then exits with success. If UP_FD is -1, this process
 * is in the foreground: only change the working directory. Return 0 or a negative errno. After
 * -EPIPE this process must end, because the parent was killed.
 */
int daemon_ready(int up_fd);

struct notify {
	struct sockaddr_un address;
	socklen_t len; /* length of ADDRESS; 0 if there is no socket */
};

/* Read NOTIFY_SOCKET from the environment, and remove it there, so that jobs do not inherit it. */
void notify_init(struct notify *n);

/* Send a message of sd_notify, such as "READY=1\nSTATUS=...". Never wait, and ignore errors. */
void notify_send(const struct notify *n, const char *fmt, ...) printf_like(2, 3);
