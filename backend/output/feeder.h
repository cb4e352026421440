/* SPDX-License-Identifier: MIT */
/*
 * The interface between a log's writer (writer.c) and the log's job (output.c). The job notifies
 * the writer when the writer may begin. After each write to the disk, the writer passes the written
 * chunks to the job, so that the job need not read them from disk. I/O thread.
 */
#pragma once

#include "backend/output/chunk.h"
#include "backend/output/file.h"
#include "backend/output/output.h"
#include "backend/output/room.h"

/*
 * The pointers are valid while the writer is open. Afterwards, they are valid only between
 * output_log_enter and output_log_leave.
 */
struct feeder {
	struct output_log *log;
	const char *id; /* argument of functions in folder.h */
	int dir_fd;	/* argument of functions in folder.h */
	struct loop *loop;
	struct room *room; /* counts the bytes of the table of lines */
	size_t *pending;   /* bytes of all writers that wait for the disk */
};

/* The log KEY of J must have begun. */
struct feeder output_log_feeder(struct output_job *j, const char *key);
/*
 * Call FN(DATA) when the pool has created the file of L, or has failed to. If this has happened
 * already, call FN immediately. If FN is NULL, the FN of an earlier call will not be called. Only
 * one caller can wait.
 */
void output_log_when_open(struct output_log *l, loop_fn fn, void *data);
/* Call these around work on L's files. Meanwhile L does not end, and its job is not freed. */
void output_log_enter(struct output_log *l);
void output_log_leave(struct output_log *l);
/*
 * Call this when L's bytes FROM to TO are on disk. CHUNKS may lack the bytes of an incomplete last
 * line.
 */
void output_log_written(struct output_log *l, uint64_t from, uint64_t to,
			const struct chunks *chunks);
/*
 * Call this when L's first TO bytes are on disk, but the caller has no chunks of the new bytes.
 * kxfs then reads the new bytes from the disk.
 */
void output_log_found(struct output_log *l, uint64_t to);
