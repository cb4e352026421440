/* SPDX-License-Identifier: MIT */
/* A pipe that a successful exec closes tells whether the program runs, as uv_spawn does it with its own. */
#include "backend/base/spawn.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>

#include "backend/base/process.h"
#include "spec/base/mem.h"

#define SPAWN_NAME "plugin-start"
#define TOLD_FD	   3	/* in the process in between: where it writes the errno of exec */
#define TOLD_MS	   5000 /* whoever has not failed by then is taken to run */

void spawn_helper(char **argv)
{
	int err;

	if (!argv[0] || !streq(argv[0], SPAWN_NAME))
		return;
	if (!argv[1] || !argv[2])
		_exit(EXIT_FAILURE);
	process_limit_descriptors(strtoull(argv[1], NULL, 10));
	fcntl(TOLD_FD, F_SETFD, FD_CLOEXEC);
	execvp(argv[2], argv + 2);
	err = errno;
	(void)!write(TOLD_FD, &err, sizeof(err));
	_exit(EXIT_FAILURE);
}

int spawn_self(char *const *argv, const int fds[3], pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t all, none;
	int err;

	memset(&all, 0xff, sizeof(all)); /* sigfillset leaves out those that glibc uses itself */
	sigemptyset(&none);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF |
						POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawn_file_actions_init(&files);
	err = 0;
	for (int i = 0; i < 3 && !err; i++)
		err = fds[i] < 0
			      ? posix_spawn_file_actions_addopen(&files, i, "/dev/null", O_RDWR, 0)
			      : posix_spawn_file_actions_adddup2(&files, fds[i], i);
	if (!err)
		err = posix_spawn(ret, "/proc/self/exe", &files, &attr, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -err;
}

/* 0: it runs; or why not, and then its process is waited for already. */
static int hear(int fd, pid_t pid)
{
	struct pollfd told = {.fd = fd, .events = POLLIN};
	int err = 0;

	if (poll(&told, 1, TOLD_MS) <= 0 || read(fd, &err, sizeof(err)) != sizeof(err))
		return 0;
	waitpid(pid, NULL, 0);
	return -err;
}

/* Is our limit another one than what programs expect? */
static bool is_raised(void)
{
	struct rlimit limit;

	return getrlimit(RLIMIT_NOFILE, &limit) == 0 &&
	       limit.rlim_cur > process_given_descriptors();
}

int spawn_program(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options)
{
	char name[] = SPAWN_NAME, self[] = "/proc/self/exe";
	cleanup_free char *limit = text_print("%ju", (uintmax_t)process_given_descriptors());
	cleanup_free char **argv = NULL;
	cleanup_fd int told = -1, tell = -1;
	uv_process_options_t o = *options;
	uv_stdio_container_t stdio[TOLD_FD + 1] = {{.flags = UV_IGNORE}};
	size_t n = 0;
	int fds[2], err;

	assert(options->stdio_count == TOLD_FD && !options->cwd);
	if (!is_raised())
		return uv_spawn(loop, process, options);
	while (options->args[n])
		n++;
	argv = new0_n(char *, n + 3);
	argv[0] = name;
	argv[1] = limit;
	memcpy(argv + 2, options->args, n * sizeof(*argv));
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	told = fds[0];
	tell = fds[1];
	memcpy(stdio, options->stdio, TOLD_FD * sizeof(*stdio));
	stdio[TOLD_FD].flags = UV_INHERIT_FD;
	stdio[TOLD_FD].data.fd = tell;
	o.file = self;
	o.args = argv;
	o.stdio = stdio;
	o.stdio_count = TOLD_FD + 1;
	err = uv_spawn(loop, process, &o);
	close(take_fd(&tell));
	return err < 0 ? err : hear(told, process->pid);
}
