/* SPDX-License-Identifier: MIT */
/*
 * Counts the disk space that the output of jobs uses, and removes the output of a job. Both
 * operations run on the pool, because they may take long. I/O thread, unless noted otherwise.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/output/file.h"

struct room;

struct room *room_new(struct loop *loop, struct files *files);
void room_free(struct room *room); /* Call this after the loop has stopped; NULL is allowed. */
void room_count(struct room *room);
/* Add BYTES, which may be negative, to the count. Any thread. */
void room_add(struct room *room, int64_t bytes);
uint64_t room_bytes(const struct room *room);
/* Called when the folder was removed (ERR is 0), or could not be removed because of ERR. */
typedef void (*room_fn)(void *data, int err);
/*
 * Remove the folder of job ID, then call DONE(DATA, err). If DONE is NULL, log an error instead.
 * Readers that have opened a log can continue. The caller must ensure that nothing else uses the
 * folder.
 */
void room_remove(struct room *room, const char *id, room_fn done, void *data);
