/* SPDX-License-Identifier: MIT */
/*
 * The record of a local job on disk (job.json in the job's folder, see spec/record/record.h), which is replaced as a
 * whole in one synced step; and, for a job that changes, the object that writes it again and again.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/record/record.h"

/* Any thread; both wait for the disk. 0 or a negative errno; file_fault() has words for those of reading. */
int record_read(const char *state_dir, const char *id, struct spec_record **ret);
int record_write(const char *state_dir, const struct spec_record *rec);
/*
 * Its AppDef, from app.yaml beside it; HOME as in struct spec_app_rules. What keeps REC from having it is REC's fault
 * from now on, and if that is the disk also returned.
 */
int record_read_app(const char *state_dir, const char *home, struct spec_record *rec);
/*
 * The job, which is over, became history at TIME (ns): record_read says so from now on. Nothing is synced, so that many
 * jobs are removed as quickly as files: after a crash of the machine such a job may stand in jobs/ again.
 */
int record_mark(const char *state_dir, const char *id, int64_t time);
/* The first one of a new job: it also keeps room on the disk for the final one. */
int record_write_first(const char *state_dir, const struct spec_record *rec);

/* Below: I/O thread. One write at a time; what changes meanwhile goes into the next. */

struct record_writer;

struct record_writer_events {
	/*
	 * The record is about to be written: its text as it is now (malloc'ed). NULL: not yet, there will be
	 * another change. *RET_FINAL: the job is over, and the room that was kept for this may be used.
	 */
	char *(*text)(void *data, bool *ret_final);
	/*
	 * It has been written, with all changes up to number CHANGE; or could not be, for ERR. PENDING: there
	 * has been a change since, and it is written again. The writer may be freed here if nothing is pending.
	 */
	void (*written)(void *data, int err, uint64_t change, bool pending);
};

/* For the job's folder DIR. What could not be written is tried again every two seconds. */
struct record_writer *record_writer_new(struct loop *loop, const char *dir,
					const struct record_writer_events *events, void *data);
/* Nothing is being written. */
void record_writer_free(struct record_writer *w);
/* The record has changed: it is written after this turn of the loop. Returns the change's number, from 1. */
uint64_t record_writer_changed(struct record_writer *w);
/* From now on a failed write is not tried again by itself. */
void record_writer_last(struct record_writer *w);
