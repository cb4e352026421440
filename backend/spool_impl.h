/* SPDX-License-Identifier: MIT */
/*
 * What the files of the spool share: spool.c (directories, jobs), spool_room.c (room on disk),
 * spool_open.c (jobs and logs that are fetched, until they can grow),
 * spool_index.c (the merged index as it is found on disk), spool_index_write.c (how it goes on there),
 * spool_pump.c (as logs grow), spool_step.c (lines become records), spool_settle.c (who waits for that), spool_order.c
 * (which log's turn it is), spool_window.c (the bytes and times of logs for that), spool_watch.c (who says
 * that a log has grown), log.c, log_merged.c and log_settle.c (readers). Private to them.
 *
 * Two threads meet here. What the I/O thread alone touches is marked so; all else is under
 * spool.lock, or atomic, or never changes. The I/O thread may read without the lock what only it writes.
 */
#ifndef KXFS_BACKEND_SPOOL_IMPL_H
#define KXFS_BACKEND_SPOOL_IMPL_H

#include <stdatomic.h>

/* No memory for a table: the caller sees it by the handle's tbl. */
#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "backend/lock.h"
#include "backend/merge.h"
#include "backend/spool.h"

#define SPOOL_TIMES   "times"	   /* the folder with the times of lines (times.h) */
#define SPOOL_BUFFER  (256u << 10) /* bytes of a log looked at at once */
#define SPOOL_OUT_MAX 64	   /* records of one job that wait to be written */
#define SPOOL_MARKS   4		   /* looks at what waits, in the time that it waits for others */
#define SPOOL_UNTIMED INT64_MIN	   /* of what no time is known: it waits for nobody */

struct spool_window;
struct spool_writer;
struct spool_load;
struct spool_errand;
struct index_batch;

/* One log of an open job. */
struct spool_source {
	struct spool_job *job;
	char *key;
	uint32_t number; /* in the table of keys */
	struct log *log; /* whoever reads it; lock */
	bool ended;	 /* for readers; lock */
	UT_hash_handle hh;

	/* I/O thread: */
	bool live;	  /* begun, and not yet wholly in the index */
	bool ending;	  /* no byte will be written any more */
	bool queued;	  /* it may have grown */
	bool stuck;	  /* to be tried again */
	uint64_t size;	  /* of one that is fetched: bytes that are on disk */
	uint64_t seen;	  /* those of them that were looked at */
	uint64_t counted; /* bytes that are part of spool.bytes */
	loop_fn fn;	  /* to be called when it has ended; NULL: nothing */
	void *data;
	struct spool_source *prev, *next; /* the queue */

	/* I/O thread, of spool_open.c: */
	bool opening;		     /* its file is not there yet, or nobody knows how long it is */
	struct spool_errand *errand; /* what is done to its files now; NULL: nothing */
	struct spool_writer *writer; /* that waits for it; NULL: none */

	/* I/O thread, of spool_order.c: */
	size_t place;		     /* in the heap, from 1; 0: no whole line waits */
	int64_t ns;		     /* the time of what waits first */
	uint64_t turn;		     /* of two of one time the lower one goes first */
	uint64_t ripe;		     /* bytes before it have waited long enough */
	uint64_t marks[SPOOL_MARKS]; /* the same so many looks later */
	uint64_t rushed;	     /* bytes that somebody waits for */
	unsigned hold;		     /* looks for which all wait for it; 0: none does */
	bool open;		     /* more may come */
	bool is_ripe;		     /* it waits, and some of it is */

	/* I/O thread, of spool_window.c: */
	bool record_known;
	uint64_t record;	     /* of the times: that of what waits first */
	struct spool_window *window; /* NULL: none now */
};

/* Somebody waits until the index has what the logs held when they asked. */
struct spool_settle {
	struct log *log; /* a reference */
	loop_fn fn;
	void *data;
	uint64_t *targets; /* of sources 0..n-1; 0: nothing to wait for; NULL: not known yet */
	size_t n;
	struct spool_settle *next;
};

struct spool_job {
	struct spool *spool;
	char *id;
	struct spool_source *sources; /* by key; lock to change */
	struct log *log;	      /* whoever reads the merged log; lock */
	uint64_t records;	      /* on disk; lock to change, like the next three */
	uint64_t size;		      /* of the merged log */
	int64_t mtime;
	bool ended;
	UT_hash_handle hh;

	/* I/O thread: */
	bool loaded;		 /* its index is read; lock to change */
	struct spool_load *load; /* that is under way; NULL: it is not */
	struct merge_keys keys;
	struct spool_source **by_number;
	size_t keys_saved;	  /* how many of them are on disk */
	uint64_t keys_len;	  /* and how long that is */
	struct merge_record last; /* newest, maybe not on disk yet */
	bool has_last;
	uint8_t out[SPOOL_OUT_MAX * MERGE_RECORD]; /* to be written after RECORDS */
	size_t n_out;
	struct index_batch *batch; /* those of them that are being written; NULL: none */
	size_t n_live;
	struct spool_source **heap; /* those with lines that wait, the first line first */
	size_t n_heap;
	size_t n_open;	       /* sources that are */
	size_t n_open_waiting; /* and in the heap */
	size_t n_ripe;	       /* in the heap with bytes that are ripe */
	size_t n_hold;	       /* sources that are waited for */
	enum { SPOOL_IDLE, SPOOL_ACTIVE, SPOOL_WAITING } list;
	struct spool_job *prev, *next; /* of spool.active or spool.waiting */
	bool stuck;		       /* its index can't be written: to be tried again */
	bool end_asked;
	bool said_stuck;
	bool busy;   /* in a step: not to be freed */
	bool closed; /* its owner is gone; it stays until the index is whole */
	struct spool_settle *settles;
	int wd;	     /* inotify; -1: none */
	bool polled; /* looked at by a timer */
	UT_hash_handle hh_wd;
};

struct spool {
	struct loop *loop;
	const struct backend_events *events;
	char *dir; /* STATE/jobs */
	int dir_fd;
	atomic_uint refs;     /* its owner and each log */
	spool_fetch_fn fetch; /* NULL: all output is here by itself */
	void *fetch_data;
	atomic_llong bytes;
	atomic_ullong captured_bytes, captured_lines;

	struct lock lock;
	struct log *logs;	/* open ones, by name; lock */
	struct spool_job *jobs; /* open ones, by id; lock to change */
	uint64_t closes;	/* of jobs so far; lock */

	/* I/O thread: */
	size_t pending; /* bytes that wait for the disk, of all writers */
	struct spool_source *queue;
	struct spool_job *active;  /* jobs with lines that can go into the index */
	struct spool_job *waiting; /* with lines that wait for those of others */
	struct loop_timer *look;   /* at those */
	uint64_t turns;
	bool draining; /* nothing waits any more */
	struct spool_window *windows;
	bool pumping; /* a turn is posted */
	bool stopped;
	char *buf;
	struct loop_timer *retry;
	bool counting;
	bool recount;

	/* I/O thread, of spool_watch.c: */
	int inotify_fd;
	struct loop_watch *watch;
	struct loop_timer *rest; /* between two looks at inotify */
	struct loop_timer *poll;
	struct spool_job *by_wd;
	bool said_polled;
};

/* spool.c */
void spool_unref(struct spool *spool);
/* "ID/NAME", or "ID/logs/KEY"; false: too long. */
#define SPOOL_PATH_MAX 600
bool spool_name(char ret[SPOOL_PATH_MAX], const char *id, const char *folder, const char *name);
/* The file of that name for reading; any thread. A descriptor or a negative errno. */
int spool_open(const struct spool *spool, const char *id, const char *folder, const char *name);
/* The open job; under the lock or on the I/O thread. */
struct spool_job *spool_find_job(struct spool *spool, const char *id);
struct spool_source *spool_find_source(struct spool_job *j, const char *key);
void spool_job_free(struct spool_job *j);
/* The folders of job ID, made where they are not there. 0 or a negative errno. */
int spool_make_dirs(struct spool *spool, const char *id);

/* spool_open.c */
/*
 * Job ID's log KEY for appending, made if it is not there; any thread. A descriptor or a negative errno; *RET_SIZE
 * (NULL: not wanted) is how many bytes it has.
 */
int spool_open_log(struct spool *spool, const char *id, const char *key, uint64_t *ret_size);
/* J's folders, made, and what its index has. 0 or a negative errno. Any thread that has J for itself. */
int spool_load_now(struct spool_job *j);
/* I/O thread: */
/* Have the folders of J made and its index read, on the pool; then spool_pump_loaded is called. -ENOMEM. */
int spool_load(struct spool_job *j);
/* If that is under way: call FN(DATA) when it is done, and J may be gone. False: it is not. */
bool spool_load_then(struct spool_job *j, loop_fn fn, void *data);
/* J is about to go. */
void spool_load_forget(struct spool_job *j);
/* Have the file of S made, when J is loaded. Until then S is not looked at, and its writer waits. */
void spool_source_open(struct spool_source *s);
/* The times of S are of no more use. */
void spool_source_forget_times(struct spool_source *s);
/* S is about to go. */
void spool_source_gone(struct spool_source *s);

/* spool_index.c */
/* Read what J's index has, mended; makes sources of its keys. Any thread that has J for itself. */
int spool_index_load(struct spool_job *j);
/*
 * J, of which nothing is indexed yet, has what READ has read, before what was begun meanwhile. I/O thread.
 * -ENOMEM: nothing is changed.
 */
int spool_index_adopt(struct spool_job *j, struct spool_job *read);
/* A source for KEY, with a number. NULL: no memory. */
struct spool_source *spool_index_add(struct spool_job *j, const char *key, const char *prefix);

/* spool_index_write.c; I/O thread */
/* R is the next record; it waits to be written. There must be room (SPOOL_OUT_MAX). */
void spool_index_append(struct spool_job *j, const struct merge_record *r);
/* Have what waits written and shown to readers; then spool_pump_written is called. */
void spool_index_flush(struct spool_job *j);
/* Wait for that, at most MS. */
void spool_index_wait(struct spool_job *j, unsigned ms);
/* For readers the merged log, all of which is on disk, has ended. */
void spool_index_end(struct spool_job *j);
/* J is about to go; what is being written still is. */
void spool_index_forget(struct spool_job *j);

/* spool_pump.c; I/O thread */
/* S may have grown. */
void spool_pump_queue(struct spool_source *s);
/* There is something to do. */
void spool_pump_wake(struct spool *spool);
/* How many bytes of S are on disk now. 0 or a negative errno. */
int spool_pump_size(const struct spool_source *s, uint64_t *ret);
/* Of S, which is fetched, SIZE bytes are on disk. */
void spool_pump_grown(struct spool_source *s, uint64_t size);
/* J is loaded (0), or can't be now: that is tried again. J may be freed. */
void spool_pump_loaded(struct spool_job *j, int err);
/* S can't go on now, because of ERR: it is tried again. */
void spool_pump_stuck(struct spool_source *s, int err);
/* Records of J are on disk (0), or can't be written now: that is tried again. J may be freed. */
void spool_pump_written(struct spool_job *j, int err);
/* If the end was asked for and the index is whole, it ends; if it is closed too, J is freed. */
void spool_pump_end(struct spool_job *j);
/* Do what can be done, at most MS long. */
void spool_pump_drain(struct spool *spool, unsigned ms);

/* spool_step.c; I/O thread */
/* A step of J: who waits for its turn goes, until there is enough to be written. How many bytes. */
size_t spool_step(struct spool_job *j);

/* spool_settle.c; I/O thread */
/* W waits until J's index has what the logs hold now. */
void spool_settle_begin(struct spool_job *j, struct spool_settle *w);
/* J is loaded: it is known what those wait for who came before. */
void spool_settle_loaded(struct spool_job *j);
/* Call those for whom it has; or ALL. */
void spool_settle_check(struct spool_job *j, bool all);

/* spool_order.c; I/O thread */
/* S has begun: more may come. */
void spool_order_open(struct spool_source *s);
/* S has ended, and all of it has been seen. */
void spool_order_close(struct spool_source *s);
/* Whole lines of S may wait, from where it is indexed on. */
void spool_order_add(struct spool_source *s);
/* No whole line of S waits. */
void spool_order_remove(struct spool_source *s);
/* Some of what waited of S is in the index. */
void spool_order_moved(struct spool_source *s);
/*
 * Whose turn it is in J: what S has up to *RET_END, which may be in the middle of a line. NULL: nobody's now.
 */
struct spool_source *spool_order_next(struct spool_job *j, uint64_t *ret_end);
/* J is in the list where it belongs. */
void spool_order_list(struct spool_job *j);
/* The others that can go on go before J. */
void spool_order_rotate(struct spool_job *j);
/* What waits in S is to wait no longer than to the next look. */
void spool_order_rush(struct spool_source *s);
/* All wait for S at most so long, or no more. */
void spool_order_hold(struct spool_source *s, bool hold);
/* J is about to go. */
void spool_order_forget(struct spool_job *j);
/* The spool is about to go: nothing waits any more. */
void spool_order_drain(struct spool *spool);

/* spool_window.c; I/O thread */
struct spool_window *spool_windows_new(void); /* for free(); NULL: no memory */
/* The time of what waits first in S. */
int64_t spool_window_time(struct spool_source *s);
/* Where the first line begins, after that, whose time is later than UNTIL; s->seen: nowhere. */
uint64_t spool_window_until(struct spool_source *s, int64_t until);
/* Up to N bytes of S that are not in the index, into spool.buf. How many, or a negative errno. */
ssize_t spool_window_read(struct spool_source *s, size_t n);
/* Nothing of S waits. */
void spool_window_drop(struct spool_source *s);

/* spool_watch.c; I/O thread */
void spool_watch_job(struct spool_job *j);
void spool_unwatch_job(struct spool_job *j);
void spool_watch_stop(struct spool *spool);

/* log.c, log_merged.c, log_settle.c */

/* A log that a merged one is made of. */
struct log_source {
	char *key;
	char *prefix;
	int fd; /* kept open; -1: not; lock */
};

struct log {
	struct spool *spool;
	char *name; /* "ID/KEY"; merged: "ID/" */
	char *id;
	const char *key; /* in NAME; NULL: merged */
	unsigned refs;	 /* lock */
	bool listed;	 /* found by name; lock */
	UT_hash_handle hh;

	atomic_uint fetching;	    /* what was printed before it was opened is on its way */
	struct spool_settle *waits; /* for that; I/O thread */

	/* One container's: */
	atomic_bool ended;
	atomic_uint_least64_t size; /* largest that was seen */

	/* Merged; lock: */
	uint64_t records;
	uint64_t end;
	int64_t mtime;
	uint64_t hint; /* the record that was read last */
	struct log_source **sources;
	size_t n_sources;
	size_t n_kept; /* descriptors */

	int fd; /* of the log; merged: of the index, -1 until it is needed (lock) */
};

/* The open log of this name, a new reference; NULL: nobody reads it. */
struct log *log_find(struct spool *spool, const char *name);
/* The same without a new reference (KEY is NULL: merged); under the lock. */
struct log *log_find_locked(struct spool *spool, const char *id, const char *key);
/* LOG is told of an open job's news from now on; under the lock. */
void log_join(struct log *log, struct spool_source *s);
void log_join_merged(struct log *log, struct spool_job *j);
/* The same when J is not loaded yet: more may come. */
void log_await_merged(struct log *log, struct spool_job *j);
/* Tell who reads LOG (a reference, taken over; NULL is allowed). I/O thread. */
void log_tell(struct log *log);
/* Forget the names of ID's logs; who has them open reads on. */
void log_orphan(struct spool *spool, const char *id);
/* Somebody has opened LOG: have its output fetched. */
void log_fetch(struct log *log);
/* Open what LOG is made of, since its names are about to go. Any thread. */
void log_merged_hold(struct log *log);
ssize_t log_merged_read(struct log *log, char *buf, size_t n, uint64_t off);
void log_merged_clear(struct log *log);
/* How many whole records FD's index has, and where the last one ends. 0 or a negative errno. */
int log_merged_tail(int fd, uint64_t *ret_records, uint64_t *ret_end);

#endif
