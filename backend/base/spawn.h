/* SPDX-License-Identifier: MIT */
/*
 * Start a program that is not ours, with as many descriptors as we might have before we raised that limit: programs
 * with select() fail beyond 1024. libuv has no hook between fork and exec, so this program is started in between, under
 * a name of its own. I/O thread.
 */
#ifndef KXFS_BACKEND_BASE_SPAWN_H
#define KXFS_BACKEND_BASE_SPAWN_H

#include "backend/base/uv.h"

/* As uv_spawn, with three of stdio and no cwd. */
int spawn_program(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options);

/* For main(): in the process that stands in between, this does not return. */
void spawn_helper(char **argv);

#endif
