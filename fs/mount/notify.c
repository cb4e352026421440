/* SPDX-License-Identifier: MIT */
/*
 * Sends one datagram for each message. libsystemd would do the same, but loads six libraries into a
 * process that only needs to send READY=1.
 */
#include "fs/mount/notify.h"

#include "spec/base/mem.h"

void notify_init(struct notify *n)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	*n = (struct notify){.address.sun_family = AF_UNIX};
	if (len > 1 && len < sizeof(n->address.sun_path) && (path[0] == '/' || path[0] == '@')) {
		memcpy(n->address.sun_path, path, len);
		n->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
		if (path[0] == '@')
			/* an abstract socket, whose name begins with a NUL */
			n->address.sun_path[0] = 0;
		else
			n->len++;
	}
	unsetenv("NOTIFY_SOCKET");
}

void notify_send(const struct notify *n, const char *fmt, ...)
{
	cleanup_free char *text = text_of_args(fmt);
	cleanup_fd int fd = -1;

	if (!n->len)
		return;
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)!sendto(fd, text, strlen(text), MSG_NOSIGNAL,
			      (const struct sockaddr *)&n->address, n->len);
}
