/* SPDX-License-Identifier: MIT */
/*
 * The records of all jobs of a state directory. A record has the data of a job that must survive a
 * restart, and the state of its launch (see the table in records.c). The pool reads and writes the
 * files (record_file.h), with one write of a record at a time. I/O thread, unless noted otherwise.
 */
#pragma once

#include "backend/base/work.h"
#include "backend/jobs/job_files.h"
#include "backend/jobs/record_file.h"

struct record;
struct records;

/* ERR is 0 if the change is on disk, else a negative errno. */
typedef void (*records_fn)(void *data, int err);

/* STATE_DIR is borrowed. Unless PASSIVE, records_load moves damaged records to STATE/aside. */
struct records *records_new(struct loop *loop, const char *state_dir, bool passive);
void records_free(struct records *rs); /* NULL is allowed */
/* Any thread, after records_load has called DONE. */
struct job_files *records_files(struct records *rs);
/* Record whether the job of the record KEY is in the store now. */
void records_show(struct records *rs, const char *key, bool shown);

/*
 * Call FN before each write of a record R, except by records_make and records_mark. FN returns the
 * JSON text of R's PART, malloc'ed. NULL keeps the part on disk, and "" removes it. NEXT is the
 * head that will be written.
 */
typedef char *(*record_part_fn)(void *data, const struct record *r, const struct spec_head *next,
				enum record_part part);
void records_set_part(struct records *rs, enum record_part part, record_part_fn fn, void *data);

/*
 * Call FN before each write of a record R, except by records_mark. FN returns a new reference to
 * the snapshot of R's job. NULL keeps the snapshot on disk.
 */
typedef const struct spec_job *(*record_snapshot_fn)(void *data, const struct record *r);
void records_set_snapshot(struct records *rs, record_snapshot_fn fn, void *data);

/*
 * Call FN after each write of a record R by records_commit or records_note. ERR is 0 or a negative
 * errno. After an error kxfs retries the write, but without the change of a failed records_commit.
 */
typedef void (*record_written_fn)(void *data, struct record *r, int err);
void records_set_written(struct records *rs, record_written_fn fn, void *data);

/*
 * Call FN on the pool for each head H that records_load reads, one at a time. FN may take the parts
 * of H. H keeps its address until its record changes. FN returns 0, or -EINVAL if the parts are
 * damaged.
 */
typedef int (*record_read_fn)(void *data, struct spec_head *h);
void records_set_reader(struct records *rs, record_read_fn fn, void *data);

/*
 * Read all records, then call DONE. Call this once. ERR is 0 or a negative errno. If the disk can't
 * be read, the table remains empty, and TEXT is an error message that names the file.
 */
void records_load(struct records *rs, void (*done)(void *data, int err, const char *text),
		  void *data);
/* Write all changes without retries, because the mount is ending. Then call FN. */
void records_stop(struct records *rs, loop_fn fn, void *data);

/* The head is valid until the caller returns to the loop. */
const struct spec_head *record_head(const struct record *r);
/* See job_files_is_newest. */
bool record_is_newest(const struct record *r);
/* Return the PART of R that records_load has read, malloc'ed. NULL if absent or taken already. */
char *record_take_part(struct record *r, enum record_part part);
/* True if the removal of R was requested. */
bool record_is_going(const struct record *r);
/* While R has more calls of record_pin than of record_unpin, a removal of R waits. */
void record_pin(struct record *r);
void record_unpin(struct record *r);
/* Return the record with this key or uid, or NULL. */
struct record *records_by_key(const struct records *rs, const char *key);
struct record *records_by_uid(const struct records *rs, const char *uid);
/* Iterate over the records of jobs whose uid is not known yet. Begin with R == NULL. */
struct record *records_next_unseen(const struct records *rs, const struct record *r);
/* Call FN for each record, in the order of keys. FN may make and remove records. */
void records_each(struct records *rs, void (*fn)(void *data, struct record *r), void *data);
/*
 * Make a record of H, and take ownership of H. H's state must not be NEVER or HISTORY. REST is
 * copied. If H->own, set H's digest to that of the document. Call DONE when the record is on disk.
 * After an error, free the record, set *LEFT like *RET_LEFT of record_file_make, then call DONE.
 * LEFT may be NULL.
 */
struct record *records_make(struct records *rs, struct spec_head *h, const struct record_rest *rest,
			    bool *left, records_fn done, void *data);

/* A change of a record. NULL and false change nothing. The texts are copied. Plain data. */
struct record_change {
	enum record_state state; /* may be the current one */
	const char *id, *uid, *reason, *why, *boot;
	bool dropped;  /* the job's output was removed */
	bool unlinked; /* NAME.job was removed */
	bool over;     /* the job has ended */
	/*
	 * Only for records_commit: the new texts of these parts. If one is NULL, kxfs calls the
	 * part's record_part_fn or record_snapshot_fn.
	 */
	const char *plan, *snapshot;
};

/*
 * Change R on disk, then in memory, then call DONE (may be NULL). After an error R is unchanged.
 * ERR is -ESTALE if something else, mostly records_note, has changed R's state since this call.
 */
void records_commit(struct record *r, const struct record_change *change, records_fn done,
		    void *data);
/*
 * Change R in memory immediately, because the event has already happened, such as a launch. Write
 * the change within MS, and retry until this succeeds.
 */
void records_note(struct record *r, const struct record_change *change, unsigned ms);
/*
 * Change R from LIVE to HISTORY like records_commit, but write only the state letter, and don't
 * sync. So kxfs can move many jobs quickly. After a power cut R may be LIVE again.
 */
void records_mark(struct record *r, records_fn done, void *data);
/*
 * Remove the file, free R, then call DONE (may be NULL). After an error R is unchanged. The caller
 * must change a HELD record to NEVER first. Otherwise, the next start could launch the job. SYNC:
 * see record_file_remove.
 */
void records_remove(struct record *r, bool sync, records_fn done, void *data);
