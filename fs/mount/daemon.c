/* SPDX-License-Identifier: MIT */
/*
 * Forks a child, which writes a byte to a pipe when it is up. If the pipe is closed without a byte,
 * the child has failed. kxfs does not use libsystemd to notify systemd, because that would load six
 * libraries.
 */
#include "fs/mount/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

#include "backend/base/process.h"
#include "spec/base/mem.h"

void daemon_prepare(int keep)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO && fcntl(fd, F_SETFD, 0) == 0);
	if (keep > STDERR_FILENO + 1)
		close_range(STDERR_FILENO + 1, (unsigned)keep - 1, 0);
	close_range((unsigned)max_of(keep, STDERR_FILENO) + 1, ~0U, 0);
	if (keep > STDERR_FILENO)
		fcntl(keep, F_SETFD, FD_CLOEXEC);
	signal(SIGPIPE, SIG_IGN);
}

/* End the child, so that it releases the mount point. Then die from the signal that has arrived. */
static void pass_on(struct interrupt *interrupt, pid_t child)
{
	struct signalfd_siginfo came;
	ssize_t n = read(interrupt->fd, &came, sizeof(came));

	kill(child, SIGTERM);
	/* from now on, a signal ends this process immediately */
	interrupt_release(interrupt);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	if (n == sizeof(came))
		raise((int)came.ssi_signo);
}

static int wait_until_up(int fd, pid_t child, struct interrupt *interrupt)
{
	struct pollfd fds[] = {{.fd = fd, .events = POLLIN},
			       {.fd = interrupt->fd, .events = POLLIN}};
	char byte;
	int status;
	ssize_t n;

	while (poll(fds, array_size(fds), -1) < 0 && errno == EINTR)
		;
	if (fds[1].revents) {
		pass_on(interrupt, child);
		return EXIT_FAILURE;
	}
	do
		n = read(fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	interrupt_release(interrupt);
	if (n == 1)
		return EXIT_SUCCESS;
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return EXIT_FAILURE;
	if (WIFSIGNALED(status))
		fprintf(stderr, "kxfs: killed by signal %d (%s) while starting\n", WTERMSIG(status),
			strsignal(WTERMSIG(status)));
	return EXIT_FAILURE;
}

int daemon_fork(int *ret_up_fd, int *ret_status)
{
	const pid_t parent = getpid();
	struct interrupt interrupt;
	int fds[2];
	pid_t child;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	interrupt_hold(&interrupt);
	child = fork();
	if (child < 0) {
		int err = errno;

		close(fds[0]);
		close(fds[1]);
		interrupt_release(&interrupt);
		return -err;
	}
	if (child == 0) {
		/* A killed parent can't send SIGTERM to this child, so let the kernel send it. */
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		if (getppid() != parent)
			raise(SIGTERM);
		close(fds[0]);
		base_close_fd(&interrupt.fd);
		*ret_up_fd = fds[1];
		return 0;
	}
	close(fds[1]);
	*ret_status = wait_until_up(fds[0], child, &interrupt);
	close(fds[0]);
	return 1;
}

int daemon_ready(int up_fd)
{
	cleanup_fd int up = up_fd;
	cleanup_fd int null = -1;

	if (chdir("/") < 0)
		return -errno;
	if (up < 0)
		return 0;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0)
		return -errno;
	setsid();
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		dup2(null, fd);
	prctl(PR_SET_PDEATHSIG, 0);
	/* Report success last: once the parent has exited, don't use the terminal. */
	return write(up, "", 1) == 1 ? 0 : -EPIPE;
}

/* --- notifications --- */

void notify_init(struct notify *n)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t len = path ? strlen(path) : 0;

	*n = (struct notify){.address.sun_family = AF_UNIX};
	if (len > 1 && len < sizeof(n->address.sun_path) && (path[0] == '/' || path[0] == '@')) {
		memcpy(n->address.sun_path, path, len);
		n->len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
		if (path[0] == '@')
			/* the name of an abstract socket begins with a NUL */
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
