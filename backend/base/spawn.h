/* SPDX-License-Identifier: MIT */
/*
 * Starting programs. Whoever starts one waits until it has closed what we have open, and a disk that hangs may not let
 * it close what was being written there.
 */
#ifndef KXFS_BACKEND_BASE_SPAWN_H
#define KXFS_BACKEND_BASE_SPAWN_H

#include "backend/base/uv.h"

/*
 * This program again, under the name ARGV[0] and in a session of its own, with FDS for its first three descriptors
 * (-1: /dev/null). 0 or a negative errno. *RET is for the caller to wait for. Pool.
 */
int spawn_self(char *const *argv, const int fds[3], pid_t *ret);

/*
 * As uv_spawn, with three of stdio and no cwd: a program that is not ours, with as many descriptors as we might have
 * before we raised that limit, since programs with select() fail beyond 1024. libuv has no hook between fork and exec,
 * so this program is started in between, under a name of its own. I/O thread.
 */
int spawn_program(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options);

/* For main(): in the process that stands in between, this does not return. */
void spawn_helper(char **argv);

#endif
