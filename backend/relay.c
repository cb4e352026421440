/* SPDX-License-Identifier: MIT */
/*
 * The process between a local replica and its log: what comes in on standard input, a pipe, is
 * appended to standard output, the log, until all writers of the pipe are gone. It is this program
 * started again (local_relay.c), so that it goes on when the daemon dies. One thread; it holds
 * nothing back, and nothing but a full disk or SIGKILL makes it lose a byte.
 */
#include "backend/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>

#include "backend/backend.h"
#include "backend/file.h"

#define RELAY_BUFFER (64u << 10) /* what a pipe holds */

static volatile sig_atomic_t relay_told;

static void relay_on_signal(int sig)
{
	(void)sig;
	relay_told = 1;
}

/* Who ends "all of kxfs" by signals must not take away the ears of the programs that still run. */
static void relay_signals(sigset_t *ret_waiting)
{
	static const int ignored[] = {SIGHUP,  SIGINT,	SIGQUIT, SIGTERM,
				      SIGPIPE, SIGUSR1, SIGUSR2, SIGXFSZ};
	struct sigaction ignore = {.sa_handler = SIG_IGN};
	struct sigaction told = {.sa_handler = relay_on_signal};
	sigset_t blocked;

	for (size_t i = 0; i < array_size(ignored); i++)
		sigaction(ignored[i], &ignore, NULL);
	/* It comes while waiting, never between a read and the write that belongs to it. */
	sigemptyset(&blocked);
	sigaddset(&blocked, RELAY_ENOUGH);
	sigprocmask(SIG_BLOCK, &blocked, ret_waiting);
	sigdelset(ret_waiting, RELAY_ENOUGH);
	sigaction(RELAY_ENOUGH, &told, NULL);
}

/* Move up to MAX bytes. How many; 0: the writers are gone; or a negative errno. */
static ssize_t relay_copy(size_t max)
{
	static char buf[RELAY_BUFFER];
	ssize_t n;
	int err;

	do
		n = read(STDIN_FILENO, buf, min_of(max, sizeof(buf)));
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n < 0 ? -errno : 0;
	err = file_write_all(STDOUT_FILENO, buf, (size_t)n);
	return err < 0 ? err : n;
}

/* Wait for input or its end. False: told that it is enough. */
static bool relay_wait(const sigset_t *waiting)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};

	while (!relay_told && ppoll(&in, 1, NULL, waiting) < 0 && errno == EINTR)
		;
	return !relay_told;
}

static int relay_run(const sigset_t *waiting)
{
	ssize_t n = 1;
	int left = 0;

	while (n > 0 && relay_wait(waiting))
		n = relay_copy(RELAY_BUFFER);
	/* Who still writes may do so for ever: what is there now, and no more. */
	if (n > 0 && ioctl(STDIN_FILENO, FIONREAD, &left) < 0)
		return -errno;
	while (n > 0 && left > 0) {
		n = relay_copy((size_t)left);
		left -= (int)n;
	}
	return n < 0 ? (int)n : 0;
}

void backend_helper(char **argv)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	sigset_t waiting;

	if (!argv[0] || !streq(argv[0], RELAY_NAME))
		return;
	relay_signals(&waiting);
	prctl(PR_SET_NAME, RELAY_NAME);
	/* Best effort: it tells a later daemon who writes the log. */
	fcntl(STDOUT_FILENO, F_SETLK, &lock);
	_exit(-relay_run(&waiting));
}
