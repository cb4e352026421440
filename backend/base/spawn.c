/* SPDX-License-Identifier: MIT */
/* A pipe that a successful exec closes reports whether the program runs. */
#include "backend/base/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>

#include "backend/base/process.h"
#include "spec/base/mem.h"

#define SPAWN_NAME "plugin-start"

void spawn_between(char **argv)
{
	int report_fd, null, err;

	if (!argv[0] || !streq(argv[0], SPAWN_NAME))
		return;
	report_fd = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (!argv[1] || !argv[2] || report_fd < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0)
		_exit(EXIT_FAILURE);
	process_limit_descriptors(strtoull(argv[1], NULL, 10));
	execvp(argv[2], argv + 2);
	err = errno;
	(void)!write(report_fd, &err, sizeof(err));
	_exit(EXIT_FAILURE);
}

int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret)
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
		err = posix_spawn(ret, "/proc/self/exe", &files, &attr, argv, env);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&attr);
	return -err;
}

int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret)
{
	char name[] = SPAWN_NAME;
	cleanup_free char *limit = text_print("%ju", (uintmax_t)process_given_descriptors());
	cleanup_free char **argv = NULL;
	size_t n = 0;

	while (args[n])
		n++;
	argv = new0_n(char *, n + 3);
	argv[0] = name;
	argv[1] = limit;
	memcpy(argv + 2, args, n * sizeof(*argv));
	return spawn_self(argv, env, fds, ret);
}
