/* SPDX-License-Identifier: MIT */
/* Tells systemd, or whoever else has set NOTIFY_SOCKET, how far this process is, by sd_notify's protocol. */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "spec/base/base.h"

struct notify {
	struct sockaddr_un address;
	socklen_t len; /* length of ADDRESS; 0: nobody wants to know */
};

/* Read $NOTIFY_SOCKET and take it out of the environment, so that jobs do not inherit it. */
void notify_init(struct notify *n);

/* Send "READY=1" and the like, lines separated by newlines. Never waits; failures change nothing. */
void notify_send(const struct notify *n, const char *fmt, ...) printf_like(2, 3);
