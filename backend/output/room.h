/* SPDX-License-Identifier: MIT */
/* Counts and removes the output of jobs, on the pool. I/O thread, unless noted otherwise. */
#pragma once

#include "backend/base/loop.h"
#include "backend/output/file.h"

struct room;

struct room *room_new(struct loop *loop, struct files *files);
void room_free(struct room *room); /* After loop_stop; NULL is allowed. */
void room_count(struct room *room);
/* Add BYTES, which may be negative, to the count. Any thread. */
void room_add(struct room *room, int64_t bytes);
uint64_t room_bytes(const struct room *room);
/* ERR is 0 if the folder was removed, else a negative errno. */
typedef void (*room_fn)(void *data, int err);
/*
 * Prepare to remove the folder of job ID. room_remove removes the folder, calls DONE(DATA, err), or
 * logs an error if DONE is NULL, and frees REMOVAL. From room_remove until DONE, nothing else may
 * use the folder. Readers that have opened a log can continue.
 */
struct room_removal *room_removal_new(struct room *room, const char *id, room_fn done, void *data);
void room_remove(void *removal);
