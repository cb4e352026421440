/* SPDX-License-Identifier: MIT */
/*
 * The records of all jobs of a state directory. A record has the data of a job that survive a
 * restart, and the state of its launch. The head of records.c has the states and the table of their
 * changes. I/O thread; the pool reads and writes the files (record_file.h), one write of a record
 * at a time.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/jobs/job_files.h"
#include "backend/jobs/record_file.h"

struct record;
struct records;

/* Called when a request is done: ERR is 0 if the disk has the change, else a negative errno. */
typedef void (*records_fn)(void *data, int err);

/* Make an empty table. STATE_DIR is borrowed. If PASSIVE, damaged records remain where they are. */
struct records *records_new(struct loop *loop, const char *state_dir, bool passive);
void records_free(struct records *rs); /* NULL is allowed */
/* Return the table of launches by file of submit/. Any thread, after records_load is done. */
struct job_files *records_files(struct records *rs);
/* The job of the record KEY was put into the store, or (not SHOWN) removed from it. */
void records_show(struct records *rs, const char *key, bool shown);

/*
 * Each time R is rewritten, FN returns the JSON text of its PART, malloc'ed; NEXT is the head to be
 * written. If FN returns NULL, the part remains as on disk; if it returns "", the part is removed.
 */
typedef char *(*record_part_fn)(void *data, const struct record *r, const struct spec_head *next);
void records_set_part(struct records *rs, enum record_part part, record_part_fn fn, void *data);

/*
 * FN returns the snapshot to be written with R, a new reference; the pool renders it. If FN returns
 * NULL, the snapshot remains as on disk.
 */
typedef const struct spec_job *(*record_snapshot_fn)(void *data, const struct record *r);
void records_set_snapshot(struct records *rs, record_snapshot_fn fn, void *data);

/*
 * FN is called after each rewrite of R: ERR is 0 or a negative errno. records.c retries a failed
 * rewrite, unless records_commit requested it.
 */
typedef void (*record_written_fn)(void *data, struct record *r, int err);
void records_set_written(struct records *rs, record_written_fn fn, void *data);

/*
 * FN is called on the pool, never concurrently, for each head H that the start reads. It may take
 * the parts of H. H keeps its address until its record changes. FN returns 0, or -EINVAL if the
 * parts are damaged.
 */
typedef int (*record_read_fn)(void *data, struct spec_head *h);
void records_set_reader(struct records *rs, record_read_fn fn, void *data);

/*
 * Read all files, once; then call DONE. A damaged file is moved to STATE/aside. If a file can't be
 * read from the disk, ERR is the errno, TEXT (for people) names the file and the remedy, and there
 * are no records.
 */
void records_load(struct records *rs, void (*done)(void *data, int err, const char *text),
		  void *data);
/*
 * The mount ends: write all changes immediately, and do not retry. Call FN when all writes have
 * ended.
 */
void records_stop(struct records *rs, loop_fn fn, void *data);

/* Return the present head of R. It is valid until the caller returns to the loop. */
const struct spec_head *record_head(const struct record *r);
/*
 * Return the PART of R that records_load has read, malloc'ed; the caller owns it. NULL if R does
 * not have this part.
 */
char *record_take_part(struct record *r, enum record_part part);
/* True if the removal of R was requested. */
bool record_is_going(const struct record *r);
/*
 * Keep R until record_unpin was called as often. A removal waits until then; other requests
 * overtake it.
 */
void record_pin(struct record *r);
void record_unpin(struct record *r);
/* Return the record with this key or uid, or NULL. */
struct record *records_by_key(const struct records *rs, const char *key);
struct record *records_by_uid(const struct records *rs, const char *uid);
/*
 * Iterate over the records of jobs that were not seen, whose uid is unknown: return the record
 * after R, or the first one if R is NULL. NULL at the end.
 */
struct record *records_next_unseen(const struct records *rs, const struct record *r);
/* Call FN for each record; FN may make and remove records. */
void records_each(struct records *rs, void (*fn)(void *data, struct record *r), void *data);
/*
 * Make a record of H, which is neither NEVER nor HISTORY, and is taken over with its parts. REST is
 * copied. If H is OWN, it gets the digest of the document. DONE is called when the record is on
 * disk. After an error the record is freed before that, and *LEFT, which the caller owns, is set as
 * record_file_make does.
 */
struct record *records_make(struct records *rs, struct spec_head *h, const struct record_rest *rest,
			    bool *left, records_fn done, void *data);

/* A change of a record. Plain data. Texts are copied; a text that is NULL does not change. */
struct record_change {
	enum record_state state; /* the present state means no change */
	const char *id, *uid, *reason, *why, *boot;
	bool dropped;  /* its output is removed; false: as before */
	bool unlinked; /* NAME.job was removed; false: as before */
	bool over;     /* the job is over; false: as before */
	/*
	 * Texts of these parts. If NULL, use the function of records_set_part or
	 * records_set_snapshot. Only for records_commit.
	 */
	const char *plan, *snapshot;
};

/*
 * Change R on disk, then in memory, and then call DONE (may be NULL). After an error R is
 * unchanged. -ESTALE: records_note has changed the state of R meanwhile, and that state remains.
 */
void records_commit(struct record *r, const struct record_change *change, records_fn done,
		    void *data);
/*
 * Change R in memory immediately, because the change has happened already: to LIVE, or from LIVE to
 * HISTORY. It is written within MS, and retried until the disk accepts it.
 */
void records_note(struct record *r, const struct record_change *change, unsigned ms);
/*
 * Change R, which is LIVE on disk, to HISTORY as records_commit does, but write only the state
 * letter, without a sync: many jobs are moved as quickly as files. After a power cut such a job may
 * be LIVE again.
 */
void records_mark(struct record *r, records_fn done, void *data);
/*
 * Remove the file, and free R before DONE (may be NULL) is called. R must not be HELD: change it to
 * NEVER first, so that no start launches it. After an error R is as it was. SYNC as in
 * record_file_remove.
 */
void records_remove(struct record *r, bool sync, records_fn done, void *data);
