/* SPDX-License-Identifier: MIT */
/*
 * The records of all jobs of a state directory. A record has the data of a job that must survive a
 * restart, and the state of the job's launch. The head of records.c has the table of these states
 * and their changes. All functions run on the I/O thread, unless noted otherwise. The pool reads
 * and writes the files (record_file.h), with one write of a record at a time.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/jobs/job_files.h"
#include "backend/jobs/record_file.h"

struct record;
struct records;

/* Called when a request is done: ERR is 0 if the disk has the change, else a negative errno. */
typedef void (*records_fn)(void *data, int err);

/*
 * Make an empty table. STATE_DIR is borrowed. If PASSIVE, don't move damaged records to
 * STATE/aside.
 */
struct records *records_new(struct loop *loop, const char *state_dir, bool passive);
void records_free(struct records *rs); /* NULL is allowed */
/* Return the table of launches by file of submit/. Any thread, after records_load is done. */
struct job_files *records_files(struct records *rs);
/* Note that the job of the record KEY was added to the store (SHOWN), or removed from it. */
void records_show(struct records *rs, const char *key, bool shown);

/*
 * Set the function that makes PART of a record. Each time R is rewritten, FN returns the JSON text
 * of its PART, malloc'ed. NEXT is the head that will be written. If FN returns NULL, the part on
 * disk is kept; if it returns "", the part is removed.
 */
typedef char *(*record_part_fn)(void *data, const struct record *r, const struct spec_head *next);
void records_set_part(struct records *rs, enum record_part part, record_part_fn fn, void *data);

/*
 * Set the function that provides snapshots. FN returns the snapshot to write with R, a new
 * reference; the pool renders it. If FN returns NULL, the snapshot on disk is kept.
 */
typedef const struct spec_job *(*record_snapshot_fn)(void *data, const struct record *r);
void records_set_snapshot(struct records *rs, record_snapshot_fn fn, void *data);

/*
 * Call FN after each rewrite of R has succeeded (ERR is 0) or failed (ERR is a negative errno).
 * records.c retries a failed rewrite, except one that records_commit requested.
 */
typedef void (*record_written_fn)(void *data, struct record *r, int err);
void records_set_written(struct records *rs, record_written_fn fn, void *data);

/*
 * Call FN on the pool, never concurrently, for each head H that records_load reads. FN may take the
 * parts of H. H keeps its address until its record changes. FN returns 0, or -EINVAL if the parts
 * are damaged.
 */
typedef int (*record_read_fn)(void *data, struct spec_head *h);
void records_set_reader(struct records *rs, record_read_fn fn, void *data);

/*
 * Read all files, then call DONE. Call this once. A damaged file is moved to STATE/aside. If the
 * disk fails to read a file, ERR is the errno, TEXT (for people) names the file and the remedy, and
 * the table remains empty.
 */
void records_load(struct records *rs, void (*done)(void *data, int err, const char *text),
		  void *data);
/*
 * Write all changes immediately, because the mount is ending. Don't retry. Call FN when all writes
 * have ended.
 */
void records_stop(struct records *rs, loop_fn fn, void *data);

/* Return the present head of R. It is valid until the caller returns to the loop. */
const struct spec_head *record_head(const struct record *r);
/*
 * Return the PART of R that records_load has read, malloc'ed, and pass its ownership to the caller.
 * Return NULL if R does not have this part, or it was taken before.
 */
char *record_take_part(struct record *r, enum record_part part);
/* True if the removal of R was requested. */
bool record_is_going(const struct record *r);
/*
 * Pin R: a removal of R waits until record_unpin was called once for each call of record_pin. Other
 * requests don't wait.
 */
void record_pin(struct record *r);
void record_unpin(struct record *r);
/* Return the record with this key or uid, or NULL. */
struct record *records_by_key(const struct records *rs, const char *key);
struct record *records_by_uid(const struct records *rs, const char *uid);
/*
 * Iterate over the records of jobs whose uid is unknown, because kxfs has not seen them yet. Return
 * the record after R, or the first one if R is NULL. Return NULL at the end.
 */
struct record *records_next_unseen(const struct records *rs, const struct record *r);
/* Call FN for each record; FN may make and remove records. */
void records_each(struct records *rs, void (*fn)(void *data, struct record *r), void *data);
/*
 * Make a record of H, and take ownership of H and its parts. H's state must not be NEVER or
 * HISTORY. REST is copied. If H->own, set H's digest to that of the document. Call DONE when the
 * record is on disk. After an error, free the record, then call DONE; *LEFT, which the caller owns,
 * is set as by record_file_make.
 */
struct record *records_make(struct records *rs, struct spec_head *h, const struct record_rest *rest,
			    bool *left, records_fn done, void *data);

/* A change of a record. Plain data. The texts are copied. A text that is NULL remains as it is. */
struct record_change {
	enum record_state state; /* the new state; it may be the present state */
	const char *id, *uid, *reason, *why, *boot;
	bool dropped;  /* the job's output is removed; false: as before */
	bool unlinked; /* NAME.job was removed; false: as before */
	bool over;     /* the job is over; false: as before */
	/*
	 * New texts of these parts, only for records_commit. If NULL, the functions of
	 * records_set_part and records_set_snapshot make them.
	 */
	const char *plan, *snapshot;
};

/*
 * Change R on disk, then in memory, then call DONE (may be NULL). After an error R is unchanged.
 * The error is -ESTALE if records_note has changed the state of R in the meantime; R keeps that
 * state.
 */
void records_commit(struct record *r, const struct record_change *change, records_fn done,
		    void *data);
/*
 * Change R in memory immediately, because the event has already happened: the job was launched
 * (LIVE), or has left jobs/ (HISTORY). Write the change to disk within MS, and retry until the disk
 * accepts it.
 */
void records_note(struct record *r, const struct record_change *change, unsigned ms);
/*
 * Change R from LIVE to HISTORY like records_commit, but write only the state letter, without a
 * sync. Without the sync, many jobs are moved quickly. After a power cut R may be LIVE again.
 */
void records_mark(struct record *r, records_fn done, void *data);
/*
 * Remove the file, free R, then call DONE (may be NULL). R must not be HELD: change it to NEVER
 * first, so that no start of kxfs launches the job. After an error R is unchanged. SYNC: see
 * record_file_remove.
 */
void records_remove(struct record *r, bool sync, records_fn done, void *data);
