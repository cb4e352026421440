/* SPDX-License-Identifier: MIT */
/*
 * The interface between a log's writer (writer.c) and the log's job (output.c). The job notifies
 * the writer when the writer may begin. The writer passes chunks to the job after it has written
 * them, so the job need not read them from disk. Only writer.c and output.c use this header. I/O
 * thread.
 */
#pragma once

#include "backend/output/chunk.h"
#include "backend/output/file.h"
#include "backend/output/output.h"
#include "backend/output/room.h"

/*
 * What a writer uses of the log and of its job. These pointers are valid while the writer is open,
 * and between output_log_enter and output_log_leave.
 */
struct feeder {
	struct output_log *log;
	const char *id; /* the job's name, for folder.h */
	int dir_fd;	/* see folder.h */
	struct loop *loop;
	struct room *room; /* where the writer counts the bytes of its table of lines */
	size_t *pending;   /* number of bytes, of all writers together, that wait for the disk */
};

/* Return the feeder of the log KEY of J. The log must have begun. */
struct feeder output_log_feeder(struct output_job *j, const char *key);
/*
 * Call FN(DATA) when the file of L exists, or could not be created; within this call if that is
 * known already. If FN is NULL, cancel an earlier call. Only one caller can wait.
 */
void output_log_when_open(struct output_log *l, loop_fn fn, void *data);
/*
 * Return 0 if the writer may write L, else a negative errno. The writer may not write L while the
 * index of L's job can't be read. That index may refer to bytes of L that a crash of the machine
 * has lost, and bytes written now would take the place of these lost bytes.
 */
int output_log_refusal(const struct output_log *l);
/*
 * Call output_log_enter when work on the files of L begins, and output_log_leave when it ends. In
 * between, L's job is not freed, and L does not end.
 */
void output_log_enter(struct output_log *l);
void output_log_leave(struct output_log *l);
/*
 * Notify L that its bytes from offset FROM to offset TO are on disk now. CHUNKS contains these
 * bytes. Only the bytes of an incomplete last line may be missing in CHUNKS.
 */
void output_log_written(struct output_log *l, uint64_t from, uint64_t to,
			const struct chunks *chunks);
/* Notify L that its first TO bytes are on disk now. L reads the new ones from there. */
void output_log_found(struct output_log *l, uint64_t to);
