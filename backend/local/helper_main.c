/* SPDX-License-Identifier: MIT */
/*
 * The main() of processes that kxfs starts from its own binary: helpers (helper.c), and the
 * intermediate processes of spawn_program (base/process.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/prctl.h>

#include "backend/backend.h"
#include "backend/base/process.h"
#include "backend/local/guard.h"
#include "backend/local/helper.h"

/*
 * Move the instructions and the socket away from descriptors 0 and 1. Change to the job's folder,
 * the first text of the instructions, so that lsof shows the job of this helper.
 */
static int take_instructions(int *ret_instructions, int *ret_listen)
{
	cleanup_fd int null_fd = -1;
	char dir[PATH_MAX];
	ssize_t n;

	*ret_instructions = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	*ret_listen = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (*ret_instructions < 0 || *ret_listen < 0 || null_fd < 0 ||
	    dup2(null_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0)
		return -errno;
	n = pread(*ret_instructions, dir, sizeof(dir), 0);
	if (n <= 0 || !memchr(dir, 0, (size_t)n))
		return -EINVAL;
	return chdir(dir) < 0 ? -errno : 0;
}

void backend_helper(char **argv)
{
	static const int ignored[] = {SIGHUP,  SIGINT,	SIGQUIT, SIGTERM,
				      SIGPIPE, SIGUSR1, SIGUSR2, SIGXFSZ};
	int instructions_fd, listen_fd, err;
	sigset_t blocked;

	spawn_between(argv);
	if (!argv[0] || !streq(argv[0], HELPER_NAME))
		return;
	close_range(STDERR_FILENO + 1, ~0u, 0);
	/*
	 * Users may send a signal to all processes of kxfs. The helper ignores it, because output
	 * is lost without a helper.
	 */
	for (size_t i = 0; i < array_size(ignored); i++)
		signal(ignored[i], SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigaddset(&blocked, GUARD_ORPHAN_SIGNAL);
	sigprocmask(SIG_SETMASK, &blocked, NULL);
	prctl(PR_SET_NAME, HELPER_NAME);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	err = take_instructions(&instructions_fd, &listen_fd);
	if (!err)
		err = helper_run(instructions_fd, listen_fd);
	_exit(-err);
}
