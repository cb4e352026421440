/* SPDX-License-Identifier: MIT */
/*
 * The record of a local job on disk (job.json in the job's folder, see spec/record/record.h), which is replaced as a
 * whole in one synced step; and, for a job that changes, the object that writes it again and again.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/record/record.h"

/*
 * This and the next are for any thread, and wait for the disk. 0 or a negative errno, for which file_fault() has words
 * when reading fails.
 */
int record_read(const char *state_dir, const char *key, struct spec_record **ret);
int record_write(const char *state_dir, const struct spec_record *rec);
/*
 * Read REC's AppDef from app.yaml beside the record; HOME as in struct spec_app_rules. If it can't be had, REC's fault
 * says why from now on; if the disk is the reason, the errno is returned, too.
 */
int record_read_app(const char *state_dir, const char *home, struct spec_record *rec);
/*
 * Note that the job, which is over, became history at TIME (ns); record_read says so from now on. Nothing is synced, so
 * that many jobs are removed as quickly as files: after a crash of the machine such a job may stand in jobs/ again.
 */
int record_mark(const char *state_dir, const char *key, int64_t time);
/*
 * Remove the folder DIR of a job that has no record, with the files that a submission makes before the record. -EEXIST:
 * the folder holds more, and nothing is done.
 */
int record_remove_begun(const char *dir);
/* Write the first record of a new job. This also keeps room on the disk for the last one. */
int record_write_first(const char *state_dir, const struct spec_record *rec);

/* The functions below are for the I/O thread. One write at a time; what changes meanwhile goes into the next. */

struct record_writer;

struct record_writer_events {
	/*
	 * The record is about to be written: returns its text as it is now (malloc'ed). NULL: not yet, there will be
	 * another change. *RET_FINAL: the job is over, and the room that was kept for this may be used.
	 */
	char *(*text)(void *data, bool *ret_final);
	/*
	 * The record was written, with all changes up to number CHANGE; or could not be, for ERR. PENDING: it has
	 * changed since, and is written again. The writer may be freed here if nothing is pending.
	 */
	void (*written)(void *data, int err, uint64_t change, bool pending);
};

/* Make a writer for the job's folder DIR. A write that fails is tried again every two seconds. */
struct record_writer *record_writer_new(struct loop *loop, const char *dir,
					const struct record_writer_events *events, void *data);
/* To be called when nothing is being written. */
void record_writer_free(struct record_writer *w);
/* The record has changed: it is written after this turn of the loop. Returns the change's number, from 1. */
uint64_t record_writer_changed(struct record_writer *w);
/* From now on a failed write is not tried again by itself. */
void record_writer_last(struct record_writer *w);
