/* SPDX-License-Identifier: MIT */
/*
 * Counts the disk space that the output of jobs uses (logs, their tables of lines, and the indexes
 * of merged logs), and removes the output of a job. Both operations run on the pool, because they
 * may take long. I/O thread, unless noted otherwise.
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
 * Prepare to remove the folder of job ID. Pass the result to room_remove, which removes the folder,
 * calls DONE(DATA, err), and frees REMOVAL. If DONE is NULL, it logs an error instead. Readers that
 * have opened a log can continue. From the call of room_remove on, nothing else may use the folder.
 */
struct room_removal *room_removal_new(struct room *room, const char *id, room_fn done, void *data);
void room_remove(void *removal);
