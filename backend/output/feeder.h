/* SPDX-License-Identifier: MIT */
/*
 * What a log's writer (writer.c) needs of the job that the log belongs to (output.c): when it may begin, and to whom it
 * gives what it has written, so that the merged log gets that from memory. Only these two use it. I/O thread.
 */
#pragma once

#include "backend/output/file.h"
#include "backend/output/output.h"
#include "backend/output/piece.h"
#include "backend/output/room.h"

/* What a writer knows of its log and its job, for as long as the log is entered or the writer is open. */
struct feeder {
	struct output_log *log;
	struct file *file;
	struct loop *loop;
	struct room *room; /* to which the writer adds the bytes of its table */
	size_t *pending;   /* bytes of all writers that wait for the disk */
};

/* The feeder of the log KEY of J, which has begun. */
struct feeder output_log_feeder(struct output_job *j, const char *key);
/*
 * Call FN(DATA) when the file of L is there or the disk refuses it, at once if that is known. With FN NULL whoever
 * waited does not wait any more. Only one can wait.
 */
void output_log_when_open(struct output_log *l, loop_fn fn, void *data);
/*
 * Why nothing may be written into L now, a negative errno: the index may tell of bytes of L that a crash of the machine
 * has lost, and others would count as these. 0: it may be written.
 */
int output_log_refusal(const struct output_log *l);
/* Something is being done to the files of L: until output_log_leave its job stays, and L does not end. */
void output_log_enter(struct output_log *l);
void output_log_leave(struct output_log *l);
/* Bytes FROM..TO of L are on disk now. They are these pieces, and perhaps a line that has no end yet. */
void output_log_written(struct output_log *l, uint64_t from, uint64_t to,
			const struct pieces *pieces);
/* TO bytes of L are on disk now. The new ones have to be read from there. */
void output_log_found(struct output_log *l, uint64_t to);
