/* SPDX-License-Identifier: MIT */
/*
 * The records of all jobs of a state directory: what is known of each, and where its launch stands. The head of
 * records.c has the states and the table of their changes. I/O thread; the pool reads and writes the files
 * (record_file.h), one write of a record at a time.
 */
#pragma once

#include "backend/base/group.h"
#include "backend/jobs/job_files.h"
#include "backend/jobs/record_file.h"

struct records;

/* ERR is 0: it is on disk; else why it is not. */
typedef void (*records_fn)(void *data, int err);

/* Make an empty table. STATE_DIR is borrowed. PASSIVE: damaged records are left where they are. */
struct records *records_new(struct loop *loop, const char *state_dir, bool passive);
void records_free(struct records *rs); /* NULL is allowed */
/* What files of submit/ were launched as; any thread, from the end of records_load on. */
struct job_files *records_files(struct records *rs);
/* The job of the record KEY was put into the store, or (not SHOWN) removed from it. */
void records_show(struct records *rs, const char *key, bool shown);

/*
 * FN makes the JSON text of PART of R, malloc'ed, each time R is rewritten; NEXT is what will be written. NULL: it
 * stays as it is on disk; "": there is none any more.
 */
typedef char *(*record_part_fn)(void *data, const struct record *r, const struct spec_head *next);
void records_set_part(struct records *rs, enum record_part part, record_part_fn fn, void *data);

/*
 * FN returns the snapshot of R that is written with it, a new reference, which the pool makes into text. NULL: R has
 * the one that is on disk.
 */
typedef const struct spec_job *(*record_snapshot_fn)(void *data, const struct record *r);
void records_set_snapshot(struct records *rs, record_snapshot_fn fn, void *data);

/* FN is called whenever R was rewritten, or could not be, for ERR; records.c retries what records_commit does not. */
typedef void (*record_written_fn)(void *data, struct record *r, int err);
void records_set_written(struct records *rs, record_written_fn fn, void *data);

/*
 * FN is called on the pool, one call after the other, for each head H that the start reads. It may take the parts of H,
 * which stays at its address as long as its record does not change. It returns 0, or -EINVAL if the parts are damaged.
 */
typedef int (*record_read_fn)(void *data, struct spec_head *h);
void records_set_reader(struct records *rs, record_read_fn fn, void *data);

/*
 * Read all files, once; then call DONE. A damaged one is moved to STATE/aside. If the disk does not give one, ERR is
 * the errno, and TEXT says for people which and what to do; no record is there then.
 */
void records_load(struct records *rs, void (*done)(void *data, int err, const char *text),
		  void *data);
/*
 * The mount ends: what has changed is written at once, and nothing is retried. FN is called when no write is under way.
 */
void records_stop(struct records *rs, loop_fn fn, void *data);

/* What is known of R now. It stays valid until the caller returns to the loop; copy what is needed longer. */
const struct spec_head *record_head(const struct record *r);
/* The PART of R, as the start has read it; malloc'ed, the caller's from now on. NULL: there is none. */
char *record_take_part(struct record *r, enum record_part part);
/* Was its removal requested? */
bool record_is_going(const struct record *r);
/* R is not removed before record_unpin was called as often: its removal waits, and other requests go before that. */
void record_pin(struct record *r);
void record_unpin(struct record *r);
/* NULL: there is none. */
struct record *records_by_key(const struct records *rs, const char *key);
struct record *records_by_uid(const struct records *rs, const char *uid);
/* The records of jobs that nobody has seen, of which no uid is known: the one after R; NULL: the first one, or none. */
struct record *records_next_unseen(const struct records *rs, const struct record *r);
/* Call FN for each record; FN may make and remove records. */
void records_each(struct records *rs, void (*fn)(void *data, struct record *r), void *data);
/*
 * Make a record of H, which is taken over with its parts and is neither NEVER nor HISTORY. REST is copied; if H is OWN,
 * it gets the digest of the document. DONE is called when the record is on disk. After an error the record is freed
 * before that, and *LEFT, which the caller owns, is set as record_file_make does.
 */
struct record *records_make(struct records *rs, struct spec_head *h, const struct record_rest *rest,
			    bool *left, records_fn done, void *data);

/* A change of a record. Plain data; a text that is NULL stays as it is, and each is copied. */
struct record_change {
	enum record_state state; /* the same as before is no change */
	const char *id, *uid, *reason, *why, *boot;
	bool dropped;  /* its output is removed; false: as before */
	bool unlinked; /* NAME.job was removed; false: as before */
	bool over; /* the job is over, so its record hardly changes any more; false: as before */
	/* Parts, for which no function was set or finds the job; NULL: as the function says. records_commit only. */
	const char *plan, *snapshot;
};

/*
 * Change R on disk first: it changes in memory when the disk has it, right before DONE (may be NULL) is called. After
 * an error R is as it was; -ESTALE: R has changed its state meanwhile, by records_note, and that stays.
 */
void records_commit(struct record *r, const struct record_change *change, records_fn done,
		    void *data);
/*
 * Change R in memory at once, since it has happened already: to LIVE, or from LIVE to HISTORY. It is saved within MS,
 * and until the disk takes it.
 */
void records_note(struct record *r, const struct record_change *change, unsigned ms);
/* What is written of R has changed: it is saved within MS, and until the disk takes it. */
void records_save(struct record *r, unsigned ms);
/*
 * Change R, which is LIVE on disk, to HISTORY as records_commit does, but only by the letter, without a sync: many jobs
 * are moved as quickly as files. After a power cut such a job may be LIVE again.
 */
void records_mark(struct record *r, records_fn done, void *data);
/*
 * Remove the file, and free R before DONE (may be NULL) is called. R must not be HELD: it has to be NEVER before, so
 * that no start launches it. After an error R is as it was. SYNC as in record_file_remove.
 */
void records_remove(struct record *r, bool sync, records_fn done, void *data);
