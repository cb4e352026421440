/* SPDX-License-Identifier: MIT */
/*
 * Starting programs. Whoever starts one waits until it has closed what we have open, and a disk that hangs may not let
 * it close what was being written there.
 */
#pragma once

#include <sys/types.h>

/*
 * This program again, under the name ARGV[0], with the environment ENV and in a session of its own, with FDS for its
 * first three descriptors (-1: /dev/null). 0 or a negative errno. *RET is for the caller to wait for. Pool.
 */
int spawn_self(char *const *argv, char *const *env, const int fds[3], pid_t *ret);

/*
 * A program that is not ours, found by PATH, in a session of its own, with as many descriptors as we might have before
 * we raised that limit, since programs with select() fail beyond 1024. To that end this program is started in between,
 * under a name of its own. It is that process which looks for the program and waits if a disk hangs that PATH leads to;
 * a SIGKILL ends it. FDS[0] is the end of a pipe to which it writes the errno, an int, if there is no such program; it
 * is closed when the program runs, which has /dev/null there. Otherwise as spawn_self. Pool.
 */
int spawn_program(char *const *args, char *const *env, const int fds[3], pid_t *ret);

/* For main(): in the process that stands in between, this does not return. */
void spawn_helper(char **argv);
