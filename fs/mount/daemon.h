/* SPDX-License-Identifier: MIT */
/*
 * Becomes a daemon in two steps: forks before there is any thread, and detaches from the terminal
 * only when the start has succeeded. Between the two the child's messages reach the user; the
 * parent waits until the child reports whether it is up, and makes that the command's exit status.
 * Notifies systemd, or another parent that has set NOTIFY_SOCKET, by sd_notify's protocol.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "spec/base/base.h"

struct daemon {
	int up_fd; /* -1 in the foreground */
};

#define DAEMON_INIT ((struct daemon){.up_fd = -1})

/*
 * Call this first. Afterwards descriptors 0 to 2 are open, and SIGPIPE is ignored. Leaked
 * descriptors of the caller are closed, since a daemon must not keep a shell's pipe open, nor pass
 * it to jobs. KEEP (or -1) is the only descriptor above 2 that remains open; it becomes
 * close-on-exec.
 */
void daemon_prepare(int keep);

/*
 * Fork. Return 0 in the child. In the parent return 1 when the child is up or has failed, with the
 * exit status in *RET_STATUS; or a negative errno if there is no child. On SIGINT, SIGTERM or
 * SIGHUP the parent sends the child SIGTERM, waits for its end, and then ends too; after a second
 * signal it ends without waiting. These signals are blocked in the child. Until daemon_ready, the
 * child also gets SIGTERM when the parent is killed.
 */
int daemon_fork(struct daemon *d, int *ret_status);

/*
 * Report success: leave the parent's terminal, session and directory, and let the parent exit with
 * success. Return 0 or a negative errno; -EPIPE: the parent was killed, so this process must end.
 * In the foreground, only change the directory.
 */
int daemon_ready(struct daemon *d);

struct notify {
	struct sockaddr_un address;
	socklen_t len; /* length of ADDRESS; 0 without a socket */
};

/* Read $NOTIFY_SOCKET and remove it from the environment, so that jobs do not inherit it. */
void notify_init(struct notify *n);

/* Send "READY=1" and the like, lines separated by newlines. Never wait, and ignore failures. */
void notify_send(const struct notify *n, const char *fmt, ...) printf_like(2, 3);
