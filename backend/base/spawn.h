/* SPDX-License-Identifier: MIT */
/*
 * Starts programs. The caller waits until the new process has closed the files that kxfs has open, and where a disk
 * hangs it may be unable to close a file that was being written there.
 */
#pragma once

#include <sys/types.h>

/*
 * Start this program again, under the name ARGV[0], with the environment ENV and in a session of its own, with FDS for
 * its first three descriptors (-1: /dev/null). 0 or a negative errno. The caller waits for *RET. On the pool.
 */
int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret);

/*
 * Start another program, found by PATH, in a session of its own, with as many descriptors as kxfs might have before it
 * raised that limit, since programs with select() fail beyond 1024. To that end kxfs is started in between, under a
 * name of its own. It is that process which looks for the program and waits if PATH leads to a disk that hangs; a
 * SIGKILL ends it. FDS[0] is the end of a pipe to which it writes the errno, an int, if there is no such program; it is
 * closed when the program runs, which has /dev/null there. Otherwise as spawn_self. On the pool.
 */
int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret);

/* For main(): in the process that stands in between, this does not return. */
void spawn_between(char **argv);
