/* SPDX-License-Identifier: MIT */
/*
 * Notifies systemd, or another parent that has set NOTIFY_SOCKET, of this process's status, by
 * sd_notify's protocol.
 */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "spec/base/base.h"

struct notify {
	struct sockaddr_un address;
	socklen_t len; /* length of ADDRESS; 0 without a socket */
};

/* Read $NOTIFY_SOCKET and remove it from the environment, so that jobs do not inherit it. */
void notify_init(struct notify *n);

/* Send "READY=1" and the like, lines separated by newlines. Never waits; failures are ignored. */
void notify_send(const struct notify *n, const char *fmt, ...) printf_like(2, 3);
