/* SPDX-License-Identifier: MIT */
/*
 * Start programs. The caller waits until the new process has closed the descriptors of kxfs. If a
 * disk hangs, closing a file that was being written there may hang as well.
 */
#pragma once

#include <sys/types.h>

/*
 * Start this program again, under the name ARGV[0], with the environment ENV and in a session of
 * its own, with FDS for its first three descriptors (-1: /dev/null). Return 0 or a negative errno.
 * The caller waits for *RET. On the pool.
 */
int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret);

/*
 * Start another program, found by PATH, in a session of its own. Its descriptor limit is the one
 * that kxfs had before it raised its own, since programs with select() fail beyond 1024.
 *
 * An intermediate kxfs process, under a name of its own, searches PATH and lowers the limit. It
 * also waits if PATH leads to a disk that hangs; a SIGKILL ends it. FDS[0] is the write end of a
 * pipe. If there is no such program, the intermediate process writes the errno, an int, to it.
 * FDS[0] is closed when the program runs, which has /dev/null there. Otherwise as spawn_self. On
 * the pool.
 */
int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret);

/* For main(): in the intermediate process, this does not return. */
void spawn_between(char **argv);
