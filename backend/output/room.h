/* SPDX-License-Identifier: MIT */
/*
 * Counts how much room the jobs' output takes on disk, and makes room. Counting and removing run on the pool, since
 * both may take long. I/O thread, unless said otherwise.
 */
#pragma once

#include "backend/base/loop.h"
#include "backend/output/file.h"

struct room;

struct room_events {
	/* All output was counted anew, with what the logs that grow have by now. */
	void (*counted)(void *data);
	void *data;
};

struct room *room_new(struct loop *loop, struct files *files, const struct room_events *events);
void room_free(struct room *room); /* to be called after the loop has stopped; NULL is allowed */
void room_count(struct room *room);
/* BYTES more (or fewer) are on disk. Any thread. */
void room_add(struct room *room, int64_t bytes);
uint64_t room_bytes(const struct room *room);
/* The change to a folder was made (ERR is 0), or could not be. */
typedef void (*room_fn)(void *data, int err);
/*
 * Remove the folder of job ID, or (OUTPUT) only the output in it; whoever reads that reads on. Then DONE(DATA) is
 * called; if DONE is NULL, a message says what went wrong. The caller sees to it that nobody else uses the folder.
 */
void room_remove(struct room *room, const char *id, bool output, room_fn done, void *data);
/* Like room_remove, but the folder gets the name TO; -ENOTEMPTY: that is taken. */
void room_move(struct room *room, const char *id, const char *to, room_fn done, void *data);
