/* SPDX-License-Identifier: MIT */
/*
 * The interface between a log's writer (writer.c) and the log's job (output.c): when the writer may
 * begin, and where it passes written bytes, so that the merged log gets them from memory. Only
 * these two use it. I/O thread.
 */
#pragma once

#include "backend/output/chunk.h"
#include "backend/output/file.h"
#include "backend/output/output.h"
#include "backend/output/room.h"

/*
 * A writer's references to its log and its job, valid as long as the log is entered or the writer
 * is open.
 */
struct feeder {
	struct output_log *log;
	struct file *file;
	struct loop *loop;
	struct room *room; /* where the writer counts the bytes of its table */
	size_t *pending;   /* bytes of all writers that wait for the disk */
};

/* Return the feeder of the log KEY of J, which has begun. */
struct feeder output_log_feeder(struct output_job *j, const char *key);
/*
 * Call FN(DATA) when the file of L exists or the disk has refused it; immediately if one of these
 * is so already. If FN is NULL, cancel an earlier call. Only one caller can wait.
 */
void output_log_when_open(struct output_log *l, loop_fn fn, void *data);
/*
 * Return 0 if L may be written, else a negative errno. While the index can't be read, it may refer
 * to bytes of L that a crash of the machine has lost, and new bytes would take their place.
 */
int output_log_refusal(const struct output_log *l);
/*
 * Begin work on the files of L. Until output_log_leave, L's job is not freed, and L does not end.
 */
void output_log_enter(struct output_log *l);
void output_log_leave(struct output_log *l);
/*
 * The bytes from FROM to TO of L are on disk now. They consist of CHUNKS, and perhaps an incomplete
 * line.
 */
void output_log_written(struct output_log *l, uint64_t from, uint64_t to,
			const struct chunks *chunks);
/* TO bytes of L are on disk now. The new ones must be read from there. */
void output_log_found(struct output_log *l, uint64_t to);
