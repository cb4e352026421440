/* SPDX-License-Identifier: MIT */
/*
 * The records of all jobs of a state directory. A record has the data of a job that must survive a
 * restart, and the state of its launch (see the table in records.c). All functions run on the I/O
 * thread, unless noted otherwise. The pool reads and writes the files (record_file.h), with one
 * write of a record at a time.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/jobs/job_files.h"
#include "backend/jobs/record_file.h"

struct record;
struct records;

/* Called when a request has ended. ERR is 0 if the change is on disk, else a negative errno. */
typedef void (*records_fn)(void *data, int err);

/*
 * Make an empty table. STATE_DIR is borrowed. Unless PASSIVE is true, damaged records will be moved
 * to the directory aside/ in STATE_DIR.
 */
struct records *records_new(struct loop *loop, const char *state_dir, bool passive);
void records_free(struct records *rs); /* NULL is allowed */
/*
 * Return the table of the launches of each file of submit/. Any thread, after records_load has
 * called DONE.
 */
struct job_files *records_files(struct records *rs);
/* Record whether the job of the record KEY is in the store now (SHOWN). */
void records_show(struct records *rs, const char *key, bool shown);

/*
 * Let FN render PART of all records. FN is called each time a record R is written, and returns the
 * JSON text of R's PART, malloc'ed. NEXT is the head that will be written. If FN returns NULL, the
 * part on disk is kept. If FN returns "", the part is removed.
 */
typedef char *(*record_part_fn)(void *data, const struct record *r, const struct spec_head *next);
void records_set_part(struct records *rs, enum record_part part, record_part_fn fn, void *data);

/*
 * Let FN provide snapshots. FN is called each time a record R is written, and returns a new
 * reference to the snapshot that the pool writes with R. If FN returns NULL, the snapshot on disk
 * is kept.
 */
typedef const struct spec_job *(*record_snapshot_fn)(void *data, const struct record *r);
void records_set_snapshot(struct records *rs, record_snapshot_fn fn, void *data);

/*
 * Call FN each time a record R was written, or could not be written. ERR is 0 or a negative errno.
 * records.c retries a failed write. If records_commit has requested the write, the retry writes R
 * without the requested change.
 */
typedef void (*record_written_fn)(void *data, struct record *r, int err);
void records_set_written(struct records *rs, record_written_fn fn, void *data);

/*
 * Call FN for each head H that records_load reads. FN is called on the pool, once at a time. FN may
 * take the parts of H. H keeps its address until its record changes. FN returns 0, or -EINVAL if
 * the parts are damaged.
 */
typedef int (*record_read_fn)(void *data, struct spec_head *h);
void records_set_reader(struct records *rs, record_read_fn fn, void *data);

/*
 * Read the files of all records, then call DONE. Call this once. kxfs moves damaged files to
 * STATE/aside. If the disk can't be read, the table remains empty, ERR is the errno, and TEXT names
 * the file and the remedy for the user. Otherwise ERR is 0.
 */
void records_load(struct records *rs, void (*done)(void *data, int err, const char *text),
		  void *data);
/*
 * Write all changes immediately and don't retry, because the mount is ending. Call FN when all
 * writes have ended.
 */
void records_stop(struct records *rs, loop_fn fn, void *data);

/* Return the current head of R. The head is valid until the caller returns to the loop. */
const struct spec_head *record_head(const struct record *r);
/* True if R is the newest launch of its file; see job_files_is_newest. */
bool record_is_newest(const struct record *r);
/*
 * Return the PART of R that records_load has read, malloc'ed. The caller gets ownership of the
 * text. Return NULL if R does not have this part, or if an earlier call has returned it.
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
 * Iterate over the records of jobs whose uid is unknown, because kxfs has not seen these jobs yet.
 * Return the record after R, or the first one if R is NULL. Return NULL at the end.
 */
struct record *records_next_unseen(const struct records *rs, const struct record *r);
/* Call FN for each record. FN may make and remove records. */
void records_each(struct records *rs, void (*fn)(void *data, struct record *r), void *data);
/*
 * Make a record of H, and take ownership of H and its parts. H's state must not be NEVER or
 * HISTORY. REST is copied. If H->own is true, set H's digest to that of the document. Call DONE
 * when the record is on disk. After an error, free the record, set *LEFT as record_file_make does,
 * and call DONE. *LEFT belongs to the caller.
 */
struct record *records_make(struct records *rs, struct spec_head *h, const struct record_rest *rest,
			    bool *left, records_fn done, void *data);

/*
 * A change of a record. A text that is NULL, and a bool that is false, change nothing. The texts
 * are copied. Plain data.
 */
struct record_change {
	enum record_state state; /* the new state; it may be the current one */
	const char *id, *uid, *reason, *why, *boot;
	bool dropped;  /* true if the job's output was removed */
	bool unlinked; /* true if NAME.job was removed */
	bool over;     /* true if the job has ended */
	/*
	 * The new texts of these two parts, only for records_commit. If a text is NULL, the
	 * functions of records_set_part and records_set_snapshot provide it.
	 */
	const char *plan, *snapshot;
};

/*
 * Change R on disk, then in memory, then call DONE (may be NULL). After an error R is unchanged.
 * The error is -ESTALE if records_note has changed R's state in the meantime. R then keeps the
 * state that records_note has set.
 */
void records_commit(struct record *r, const struct record_change *change, records_fn done,
		    void *data);
/*
 * Change R in memory immediately, because the event has already happened: the job was launched
 * (LIVE), or has left jobs/ (HISTORY). Write the change to disk within MS, and retry until this
 * succeeds.
 */
void records_note(struct record *r, const struct record_change *change, unsigned ms);
/*
 * Change R from LIVE to HISTORY like records_commit, but write only the state letter, and don't
 * sync, so that kxfs can move many jobs quickly. After a power cut R may be LIVE again.
 */
void records_mark(struct record *r, records_fn done, void *data);
/*
 * Remove the file, free R, then call DONE (may be NULL). R must not be HELD, because the next start
 * could then launch the job: first change a HELD record to NEVER. After an error R is unchanged.
 * SYNC: see record_file_remove.
 */
void records_remove(struct record *r, bool sync, records_fn done, void *data);
