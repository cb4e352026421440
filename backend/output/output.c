/* SPDX-License-Identifier: MIT */
/*
 * The output of jobs. An open job has its logs (struct output_log), the order in which their lines
 * go into the merged log (order.c), and the index of the merged log (index.c). Each log has a file
 * (file.c), which its readers share. While kxfs fetches a log, the log has a writer (writer.c).
 *
 * A writer writes bytes to the disk, then passes their chunks to the log (feeder.h). The log passes
 * them to the order, and the order to the index. In three cases, the pool reads the chunks from the
 * disk instead (chunk.c): a helper writes the log; the output existed before kxfs started; or more
 * output waits than memory may hold.
 *
 * All of this belongs to the I/O thread, except struct file. The pool accesses the disk. Beside the
 * work of its writer, a log has at most one unit of work at a time. Each event of a log puts the
 * log into the queue of its job, and posts job_step. job_step advances the job and the logs in the
 * queue, and posts the callbacks that are due. Jobs, logs and arrivals are in one file because
 * job_step needs the states of all of them. A job is freed when its group WORK is empty.
 *
 *	job     | what is under way                     | what ends it                    | next
 *	NEW     | work of an earlier job of this name   | that work has ended             | LOADING
 *	LOADING | the pool creates the folder and reads | done                            | OPEN
 *	        | the index; logs that begin must wait  | a disk error                    | REFUSED
 *	REFUSED | a pause of one second                 | the timer                       | NEW
 *	OPEN    | logs advance; the pool writes index   | output_job_close                | GONE
 *	GONE    | the job's last work on the pool       | that work has ended             | freed
 *
 * output_job_close leads from every state to GONE. But after output_job_end, the job continues
 * until the index on disk is complete. output_job_remove ends this delay.
 *
 *	log     | what is under way                     | what ends it                    | next
 *	NEW     | the job is not OPEN yet               | the job is OPEN                 | MAKING
 *	MAKING  | the pool makes the log's file         | done                            | LIVE
 *	        |                                       | a disk error                    | UNMADE
 *	UNMADE  | a pause of one second                 | the job's timer                 | NEW
 *	LIVE    | the writer writes                     | chunks must be read from disk,  | READING
 *	        |                                       | or output_log_end (with PREFIX) |
 *	        |                                       | output_log_end (without PREFIX) | ENDED
 *	READING | the pool reads, and the writer writes | done                            | LIVE
 *	        |                                       | a disk error                    | UNREAD
 *	        |                                       | all of an ending log was read   | FED
 *	UNREAD  | a pause of one second                 | the job's timer                 | LIVE
 *	FED     | readers see the end; index is written | the index on disk has all of it | ENDED
 *	ENDED   | nothing                               | the log begins again            | NEW
 */
#include "backend/output/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/work.h"
#include "backend/output/feeder.h"
#include "backend/output/folder.h"
#include "backend/output/index.h"
#include "backend/output/order.h"
#include "backend/output/room.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define OUTPUT_RETRY_MS 1000
#define OUTPUT_RETRIES	600 /* after more failures, the archive no longer waits for the index */
#define OUTPUT_DRAIN_MS 5000
#define OUTPUT_STEP	(4u << 20) /* bytes that one step adds to an index, at most */

enum log_life {
	LOG_NEW,
	LOG_MAKING,
	LOG_UNMADE,
	LOG_LIVE,
	LOG_READING,
	LOG_UNREAD,
	LOG_FED,
	LOG_ENDED
};

struct output_log {
	struct output_job *job;
	struct file *file;
	char *prefix;		     /* NULL if the merged log does not contain the log */
	uint32_t number;	     /* in the index */
	struct order_source *source; /* NULL before the job is open, and without PREFIX */
	enum log_life life;
	bool ending; /* output_log_end was called: the log is complete */
	/*
	 * True if kxfs writes the log. Then its chunks have times, and SIZE is its whole size.
	 * False if a helper writes the log.
	 */
	bool fetched;
	/* The log was empty before this run of kxfs, so room_count has not counted its bytes. */
	bool anew;
	bool expected;
	unsigned writers;    /* calls of output_log_enter without output_log_leave */
	uint64_t size;	     /* bytes that are known to be on disk */
	uint64_t seen;	     /* bytes that were passed to the order, or are an incomplete line */
	uint64_t given;	     /* bytes that were passed to the order */
	uint64_t readings;   /* how often the log was read to its end */
	uint64_t due;	     /* unless FETCHED: kxfs must read until READINGS reaches this number */
	uint64_t whole;	     /* in FED: L ends once the disk has this many records; 0 if unknown */
	uint64_t table;	     /* unless FETCHED: how many bytes ROOM counts for the table of lines */
	struct work work;    /* in MAKING and READING */
	uint64_t found_size; /* in MAKING: size of the file */
	uint64_t found_table; /* in MAKING and READING: size of the table of lines */
	struct feed feed;     /* in READING */
	loop_fn opened;	      /* called when the file exists or could not be created; or NULL */
	void *opened_data;
	loop_fn ended; /* called when the log has ended; or NULL */
	void *ended_data;
	bool calling; /* the call of ENDED is posted */
	/* Links of the job's QUEUE. PREV is NULL if the log is not in the queue. */
	struct output_log *prev, *next;
	UT_hash_handle hh;
};

enum job_state { JOB_NEW, JOB_LOADING, JOB_REFUSED, JOB_OPEN, JOB_GONE };
enum job_end { END_NONE, END_REQUESTED, END_DONE };

/*
 * LOGGED: kxfs has logged a disk error since the last write of the index. FAILING: the last write
 * of the index has failed, and its retry is pending.
 */
enum job_trouble { TROUBLE_NONE, TROUBLE_LOGGED, TROUBLE_FAILING };

struct output_job {
	struct output *output;
	char *id;
	enum job_state state;
	struct group work;
	struct file *merged;
	struct output_log *logs; /* by key */
	struct output_log *queue;
	/* Removes the mark (UNMERGED) while UNMARKING is true. No log file is created meanwhile. */
	struct work unmark;
	bool unmarking;
	struct order *order;
	struct work load;	 /* in LOADING; in REFUSED, its ERR is the disk error */
	struct index *index;	 /* NULL before OPEN; in LOADING, only the pool uses it */
	struct loop_timer tick;	 /* runs while chunks wait */
	struct loop_timer retry; /* runs after a disk error */
	bool posted;		 /* job_step is posted */
	bool closed;
	uint64_t published; /* index_bytes when the index was last published */
	enum job_trouble trouble;
	unsigned retries; /* since the last successful write of the index */
	enum job_end end;
	size_t n_live; /* logs that have not ended */
	loop_fn gone;  /* removes the job's folder after the job is freed; or NULL */
	void *gone_data;
	UT_hash_handle hh;
	struct output_job *next; /* in the list GONE, of closed jobs that are not freed yet */
};

/*
 * UNAIMED: some logs are not open yet, so the required bytes are not known. COLLECTING: the index
 * lacks some required bytes. SYNCING: the index has them, but perhaps not on disk yet.
 */
enum arrival_state { ARRIVAL_UNAIMED, ARRIVAL_COLLECTING, ARRIVAL_SYNCING };

/* A caller that waits until all output printed so far can be read. */
struct arrival {
	struct file *file;
	loop_fn fn;
	void *data;
	enum arrival_state state;
	struct arrival_target {
		struct output_log *log;
		uint64_t readings; /* the log's READINGS must reach this number */
		uint64_t size;	   /* the index must have the first SIZE bytes of the log */
	} * targets;
	size_t n;
	uint64_t records; /* in SYNCING: the index must have so many on disk */
	struct arrival *next;
};

struct output {
	struct loop *loop;
	struct files *files;
	struct room *room;
	output_fetch_fn fetch; /* NULL if output need not be fetched */
	void *fetch_data;
	struct output_job *jobs; /* open jobs, by id */
	struct output_job *gone;
	struct arrival *arrivals;
	size_t pending; /* bytes of all writers that wait for the disk */
	bool stopping, stopped;
	struct loop_timer late; /* ends a stop that takes too long */
	loop_fn over;		/* called when stopped */
	void *over_data;
	atomic_ullong captured_bytes, captured_lines;
};

/* --- finding jobs and logs, and posting their next step --- */

static void job_step(void *data);
static void stop_if_drained(void *data);

static void job_wake(struct output_job *j)
{
	if (j->posted || j->state == JOB_GONE)
		return;
	j->posted = true;
	group_enter(&j->work);
	loop_post(j->output->loop, job_step, j);
}

/* Put L into its job's queue, so that job_step advances L. */
static void log_queue(struct output_log *l)
{
	if (!l->prev)
		DL_APPEND(l->job->queue, l);
	job_wake(l->job);
}

/* True if a disk error has stopped L, and kxfs will retry. */
static bool log_is_refused(const struct output_log *l)
{
	return l->life == LOG_UNMADE || l->life == LOG_UNREAD;
}

/* True if L has a file, and kxfs may still have to pass output of L to the order. */
static bool log_is_live(const struct output_log *l)
{
	return l->life == LOG_LIVE || l->life == LOG_READING || l->life == LOG_UNREAD;
}

/* Make kxfs read L to the end, because another process may have written more. */
static void log_need_reading(struct output_log *l)
{
	l->due = l->readings + 1 + (l->life == LOG_READING);
	log_queue(l);
}

static struct output_job *find_job(const struct output *o, const char *id)
{
	struct output_job *j;

	HASH_FIND_STR(o->jobs, id, j);
	return j;
}

static struct output_job *find_gone(struct output *o, const char *id)
{
	struct output_job *j = o->gone;

	while (j && !streq(j->id, id))
		j = j->next;
	return j;
}

static struct output_log *find_log(struct output_job *j, const char *key)
{
	struct output_log *l;

	HASH_FIND_STR(j->logs, key, l);
	return l;
}

static void on_retry(void *data)
{
	struct output_job *j = data;

	j->retries++;
	if (j->state == JOB_REFUSED)
		j->state = JOB_NEW;
	for (struct output_log *l = j->logs; l; l = l->hh.next) {
		if (!log_is_refused(l))
			continue;
		l->life = l->life == LOG_UNMADE ? LOG_NEW : LOG_LIVE;
		log_queue(l);
	}
	if (j->trouble == TROUBLE_FAILING)
		j->trouble = TROUBLE_LOGGED;
	job_wake(j);
}

/* Log ERR, unless an error was logged since the last write of the index. Retry in a second. */
static void job_refused(struct output_job *j, int err)
{
	struct output *o = j->output;

	if (j->trouble == TROUBLE_NONE) {
		diag(DIAG_ERROR,
		     "%s: its merged log can't be written: %s; kxfs retries every second", j->id,
		     strerror(-err));
		j->trouble = TROUBLE_LOGGED;
	}
	if (!loop_timer_is_set(&j->retry) && !o->stopped && j->state != JOB_GONE)
		loop_timer_set(&j->retry, OUTPUT_RETRY_MS);
	job_wake(j);
}

/* --- waiting for output to arrive --- */

/* Let A wait for all output that the logs have now. Return false if some logs are not open yet. */
static bool arrival_aim(struct output_job *j, struct arrival *a)
{
	for (struct output_log *l = j->logs; l; l = l->hh.next)
		if (l->life == LOG_NEW || l->life == LOG_MAKING)
			return false;
	a->state = ARRIVAL_COLLECTING;
	a->targets = mem_zero_n(HASH_COUNT(j->logs) + 1, sizeof(*a->targets));
	for (struct output_log *l = j->logs; l; l = l->hh.next) {
		struct arrival_target *t = &a->targets[a->n];

		if (!l->source || (!log_is_live(l) && l->life != LOG_FED))
			continue;
		*t = (struct arrival_target){.log = l, .size = l->size};
		a->n++;
		if (!l->fetched && log_is_live(l)) {
			log_need_reading(l);
			t->readings = l->due;
		}
		order_flush_early(l->source, l->size);
	}
	return true;
}

static bool target_is_met(struct output_job *j, struct arrival_target *t)
{
	struct output_log *l = t->log;

	if (log_is_live(l) && l->readings < t->readings)
		return false;
	if (t->readings > 0) {
		t->readings = 0;
		t->size = l->size;
		order_flush_early(l->source, t->size);
	}
	if (log_is_live(l) && l->seen < t->size)
		return false;
	return order_is_empty(l->source) || index_indexed(j->index, l->number) >= t->size;
}

static bool arrival_is_due(struct output *o, struct arrival *a)
{
	struct output_job *j = find_job(o, file_id(a->file));

	if (o->stopped)
		return true;
	if (file_fetch(a->file, 0) > 0)
		return false;
	if (file_key(a->file) || !j || !file_is_listed(a->file) || j->state == JOB_REFUSED)
		return true;
	if (j->state != JOB_OPEN)
		return false;
	if (a->state == ARRIVAL_UNAIMED && !arrival_aim(j, a))
		return false;
	for (size_t i = 0; i < a->n && a->state == ARRIVAL_COLLECTING; i++) {
		if (log_is_refused(a->targets[i].log))
			return true;
		if (!target_is_met(j, &a->targets[i]))
			return false;
	}
	if (a->state == ARRIVAL_COLLECTING)
		a->records = index_appended(j->index);
	a->state = ARRIVAL_SYNCING;
	return j->trouble == TROUBLE_FAILING || index_written(j->index)->records >= a->records;
}

/* Complete the arrivals of job ID whose output has arrived. If ID is NULL, check all jobs. */
static void arrivals_check(struct output *o, const char *id)
{
	struct arrival *a, *next;

	LL_FOREACH_SAFE(o->arrivals, a, next) {
		if ((id && !streq(file_id(a->file), id)) || !arrival_is_due(o, a))
			continue;
		LL_DELETE(o->arrivals, a);
		loop_post(o->loop, a->fn, a->data);
		file_unref(a->file);
		free(a->targets);
		free(a);
	}
}

bool log_has_arrived(struct log *log)
{
	struct file *f = log_file(log);

	return file_fetch(f, 0) == 0 && (file_key(f) || file_has_ended(f));
}

static void arrival_begin(void *data)
{
	struct arrival *a = data;
	struct output *o = file_owner(a->file);

	LL_APPEND(o->arrivals, a);
	arrivals_check(o, file_id(a->file));
}

void log_when_arrived(struct log *log, void (*fn)(void *data), void *data)
{
	struct output *o = file_owner(log_file(log));
	struct arrival *a;

	if (log_has_arrived(log)) {
		loop_post(o->loop, fn, data);
		return;
	}
	a = new0(struct arrival);
	a->file = file_ref(log_file(log));
	a->fn = fn;
	a->data = data;
	loop_post(o->loop, arrival_begin, a);
}

/* --- a log: making its file --- */

/*
 * The mark is an empty file in a job's folder. kxfs creates it before a log gets its first byte,
 * and removes it when the merged log is complete on disk. If kxfs finds it at the next start, kxfs
 * completes the merged log.
 */
#define UNMERGED "unmerged"

/*
 * Create the mark without a sync. After a power cut, kxfs checks the mark only if all logs are
 * recorded as complete. That record is written later, and synced together with the folder.
 */
static int mark(int dir, const char *id)
{
	cleanup_fd int fd = folder_open(dir, id, NULL, UNMERGED, O_WRONLY | O_CREAT);

	return min_of(fd, 0);
}

/* Return the size of L's table of lines; 0 if there is none. */
static uint64_t table_size(const struct output_log *l)
{
	const char *id = l->job->id;
	char path[FOLDER_PATH_MAX];
	struct stat st;

	if (!folder_path(path, id, "lines", file_key(l->file)) ||
	    disk_stat(files_dir(l->job->output->files), path, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	return (uint64_t)st.st_size;
}

static void make_work(void *data)
{
	struct output_log *l = data;
	const char *id = l->job->id;
	int dir = files_dir(l->job->output->files), err = mark(dir, id);
	cleanup_fd int fd =
		err < 0 ? err : folder_open_log(dir, id, file_key(l->file), &l->found_size);

	l->found_table = table_size(l);
	l->work.err = min_of(fd, 0);
}

static void log_call_opened(struct output_log *l)
{
	if (l->opened)
		take_ptr(l->opened)(l->opened_data);
}

static void log_set_size(struct output_log *l, uint64_t size)
{
	if (size <= l->size)
		return;
	room_add(l->job->output->room, (int64_t)(size - l->size));
	l->size = size;
	file_grow(l->file, size);
	file_notify(l->file);
}

static void make_done(void *data)
{
	struct output_log *l = data;

	l->life = l->work.err < 0 ? LOG_UNMADE : LOG_LIVE;
	if (l->work.err == 0) {
		/*
		 * Unless ANEW, room_count has counted the bytes up to FOUND_SIZE. Subtract them
		 * here, because log_set_size will add them.
		 */
		if (!l->anew && l->found_size > l->size)
			room_add(l->job->output->room, (int64_t)l->size - (int64_t)l->found_size);
		if (!l->anew)
			l->table = l->found_table;
		log_set_size(l, l->found_size);
		log_need_reading(l);
	} else {
		job_refused(l->job, l->work.err);
	}
	log_call_opened(l);
	log_queue(l);
}

/* Add L to its job's index and order. Logs are numbered in the order in which they begin. */
static void log_join(struct output_log *l)
{
	struct output_job *j = l->job;

	if (l->source || !l->prefix || j->state != JOB_OPEN)
		return;
	l->number = index_number(j->index, file_key(l->file), l->prefix);
	l->source = order_add(j->order, l);
	l->given = l->seen = index_indexed(j->index, l->number);
	if (l->expected)
		order_expect(l->source, true);
}

static void log_make(struct output_log *l)
{
	struct output_job *j = l->job;

	if (l->source)
		order_open(l->source);
	l->work = (struct work){
		.run = make_work, .done = make_done, .data = l, .group = &j->work, .of_many = true};
	l->life = LOG_MAKING;
	work_start(&l->work, j->output->loop);
}

/* --- a log: growing --- */

/* Feed the order new chunks. Return false if the order is full, or if earlier bytes are missing. */
static bool log_give(struct output_log *l, const struct chunks *chunks)
{
	for (size_t i = 0; i < chunks->n; i++) {
		const struct chunk *p = &chunks->v[i];

		if (p->from + p->length <= l->given)
			continue;
		if (p->from != l->given || order_is_full(l->source))
			return false;
		order_feed(l->source, p);
		l->given += p->length;
	}
	return true;
}

void output_log_written(struct output_log *l, uint64_t from, uint64_t to,
			const struct chunks *chunks)
{
	/* In READING, the next read from disk gets these bytes. */
	if (l->life == LOG_LIVE && l->prefix && l->seen == from && log_give(l, chunks))
		l->seen = to;
	log_set_size(l, to);
	log_queue(l);
}

void output_log_found(struct output_log *l, uint64_t to)
{
	log_set_size(l, to);
	log_queue(l);
}

static void read_work(void *data)
{
	struct output_log *l = data;

	l->work.err = feed_run(&l->feed);
	if (!l->feed.timed)
		l->found_table = table_size(l);
}

/* Process the output that L's feed has read. */
static void log_take(struct output_log *l)
{
	const struct feed *f = &l->feed;
	bool whole = f->seen >= f->size;

	if (log_give(l, &f->chunks))
		l->seen = f->seen;
	if (!f->timed) {
		log_set_size(l, f->size);
		room_add(l->job->output->room, (int64_t)l->found_table - (int64_t)l->table);
		l->table = l->found_table;
	}
	if (whole && f->size < min_of(f->limit, l->size))
		l->size = f->size; /* the log was truncated */
	l->readings += whole;
	/* ENDING is false if the log has begun again during the read. */
	if (f->final && l->ending && l->seen >= l->size)
		l->life = LOG_FED;
}

static void read_done(void *data)
{
	struct output_log *l = data;
	struct feed *f = &l->feed;

	order_read(l->source, false);
	if (l->work.err < 0) {
		l->life = LOG_UNREAD;
		job_refused(l->job, l->work.err);
	} else {
		l->life = LOG_LIVE;
		log_take(l);
	}
	chunks_clear(&f->chunks);
	log_queue(l);
}

static void log_read_disk(struct output_log *l)
{
	struct output_job *j = l->job;

	l->work = (struct work){
		.run = read_work, .done = read_done, .data = l, .group = &j->work, .of_many = true};
	l->feed = (struct feed){.dir_fd = files_dir(j->output->files),
				.id = j->id,
				.key = file_key(l->file),
				.from = l->given,
				.limit = l->fetched ? l->size : UINT64_MAX,
				.timed = l->fetched,
				.final = l->ending && l->writers == 0};
	l->life = LOG_READING;
	if (l->fetched)
		order_read(l->source, true);
	work_start(&l->work, j->output->loop);
}

/* --- a log: its end --- */

static void call_ended(void *data)
{
	struct output_log *l = data;
	loop_fn ended = l->job->output->stopped ? NULL : take_ptr(l->ended);
	void *arg = l->ended_data;

	l->calling = false;
	group_leave(&l->job->work);
	if (ended)
		return ended(arg);
}

static void log_call_ended(struct output_log *l)
{
	if (!l->ended || l->calling)
		return;
	l->calling = true;
	group_enter(&l->job->work);
	loop_post(l->job->output->loop, call_ended, l);
}

/* Show readers the end of L, which is FED. End L if the index on disk has all of it. */
static void log_finish(struct output_log *l)
{
	struct output_job *j = l->job;

	file_end(l->file);
	l->expected = false;
	order_close(l->source);
	if (!order_is_empty(l->source) || index_indexed(j->index, l->number) < l->given)
		return;
	if (l->whole == 0)
		l->whole = index_appended(j->index);
	if (index_written(j->index)->records < l->whole)
		return;
	l->life = LOG_ENDED;
	j->n_live--;
	log_call_ended(l);
}

/*
 * True if a part of L must be read from disk, and the order has space for it. A fetched log needs
 * much space: each of its lines may be a chunk, so one read may yield many chunks.
 */
static bool log_is_behind(const struct output_log *l)
{
	if (order_is_full(l->source))
		return false;
	if (l->fetched && l->seen < l->size)
		return order_has_space(l->source);
	return l->seen < l->size || (l->readings < l->due && !l->fetched) ||
	       (l->ending && l->writers == 0);
}

/* L is not part of the merged log. If L is complete, and its writer is done, end L. */
static void log_finish_alone(struct output_log *l)
{
	if (!l->ending || l->writers > 0)
		return;
	file_end(l->file);
	l->life = LOG_ENDED;
	l->job->n_live--;
	log_call_ended(l);
}

/* Advance L as far as possible without waiting. */
static void log_step(struct output_log *l)
{
	if (log_is_refused(l) && l->ending) {
		file_end(l->file);
		/* Callers that wait for L's end must not wait for the disk. */
		log_call_ended(l);
	}
	if (l->life == LOG_NEW && l->job->state == JOB_OPEN && !l->job->unmarking)
		log_make(l);
	else if (l->life == LOG_LIVE && !l->prefix)
		log_finish_alone(l);
	else if (l->life == LOG_LIVE && log_is_behind(l))
		log_read_disk(l);
	else if (l->life == LOG_FED)
		log_finish(l);
}

/* --- a job: its mark --- */

static int sync_log(void *data, int at, const char *name, unsigned char type)
{
	int fd cleanup_fd = disk_open(at, name, O_RDONLY | O_NONBLOCK);

	return fd < 0 ? fd : disk_sync_data(fd);
}

/*
 * Sync the logs and the index, then remove the mark. Without the mark, the merged log must be
 * complete after a power cut, and must not refer to bytes that a log has lost.
 */
static void unmark_work(void *data)
{
	static const char *const files[] = {"logs", "merged.keys", "merged", ""};
	const struct output_job *j = data;
	int dir = files_dir(j->output->files);
	char path[FOLDER_PATH_MAX];
	int err = folder_path(path, j->id, NULL, "logs") ? disk_list(dir, path, sync_log, NULL)
							 : -ENAMETOOLONG;

	err = err == -ENOENT ? 0 : err;
	for (size_t i = 0; i < array_size(files) && !err; i++) {
		int fd cleanup_fd = folder_open(dir, j->id, NULL, files[i], O_RDONLY);

		err = fd < 0 ? fd : disk_sync_data(fd);
		err = err == -ENOENT ? 0 : err;
	}
	if (!err && folder_path(path, j->id, NULL, UNMERGED))
		disk_unlink(dir, path);
}

static void unmark_done(void *data)
{
	struct output_job *j = data;

	j->unmarking = false;
	for (struct output_log *l = j->logs; l; l = l->hh.next)
		log_queue(l);
	job_wake(j);
}

static int find_output(void *data, int at, const char *name, unsigned char type)
{
	struct stat st;

	return disk_stat(at, name, &st) == 0 && st.st_size > 0;
}

bool output_is_unmerged(const struct output *o, const char *id)
{
	int dir = files_dir(o->files);
	char path[FOLDER_PATH_MAX];
	struct stat st;

	/* After other errors, assume that the mark exists: merging output again does no harm. */
	if (!folder_path(path, id, NULL, UNMERGED) || disk_stat(dir, path, &st) != -ENOENT)
		return true;
	/*
	 * If the disk refused both the mark and the merged log of a local job, a helper may still
	 * have written logs, which must be merged. But don't check this for a cluster: a job may
	 * have logs that its merged log must not contain (PREFIX is NULL).
	 */
	return !o->fetch && folder_path(path, id, NULL, "merged") &&
	       disk_stat(dir, path, &st) == -ENOENT && folder_path(path, id, NULL, "logs") &&
	       disk_list(dir, path, find_output, NULL) > 0;
}

/* --- a job: loading --- */

static void load_work(void *data)
{
	struct output_job *j = data;
	int dir = files_dir(j->output->files), err = folder_make(dir, j->id);

	j->load.err = err < 0 ? err : index_load(dir, j->id, j->retries > 0, &j->index);
}

static void load_done(void *data)
{
	struct output_job *j = data;

	if (j->state == JOB_GONE)
		return;
	if (j->load.err < 0) {
		j->state = JOB_REFUSED;
		job_refused(j, j->load.err);
		for (struct output_log *log = j->logs; log; log = log->hh.next) {
			log->life = LOG_UNMADE;
			log_call_opened(log);
			log_queue(log);
		}
		return;
	}
	j->state = JOB_OPEN;
	j->published = index_bytes(j->index);
	file_publish(j->merged, index_written(j->index));
	for (struct output_log *log = j->logs; log; log = log->hh.next) {
		log_join(log);
		log_queue(log);
	}
	job_wake(j);
}

/* If an earlier job of this name still has work in progress, job_over loads J later. */
static void job_load(struct output_job *j)
{
	if (find_gone(j->output, j->id))
		return;
	j->state = JOB_LOADING;
	j->load = (struct work){.run = load_work, .done = load_done, .group = &j->work, .data = j};
	work_start(&j->load, j->output->loop);
}

/* --- a job: its end --- */

static void job_free(struct output_job *j)
{
	struct output_log *l, *next;

	HASH_ITER(hh, j->logs, l, next) {
		HASH_DEL(j->logs, l);
		file_unref(l->file);
		free(l->prefix);
		free(l);
	}
	order_free(j->order);
	index_free(j->index);
	file_unref(j->merged);
	free(j->id);
	free(j);
}

/* Free J, whose work has ended. Then load the open job of the same name, if there is one. */
static void job_over(void *data)
{
	struct output_job *j = data, *heir;
	struct output *o = j->output;
	loop_fn gone = j->gone;
	void *arg = j->gone_data;

	LL_DELETE(o->gone, j);
	heir = find_job(o, j->id);
	job_free(j);
	if (heir && !o->stopped)
		job_load(heir);
	if (gone)
		return gone(arg);
}

/* Remove J from the open jobs. Free J when its work has ended. */
static void job_go(struct output_job *j)
{
	struct output *o = j->output;
	struct arrival *a;

	j->state = JOB_GONE;
	HASH_DEL(o->jobs, j);
	loop_timer_stop(&j->tick);
	loop_timer_stop(&j->retry);
	LL_PREPEND(o->gone, j);
	/* Nothing can arrive for J any more, so complete its arrivals. */
	LL_FOREACH(o->arrivals, a) {
		if (!streq(file_id(a->file), j->id))
			continue;
		free(take_ptr(a->targets));
		a->n = 0;
		a->state = ARRIVAL_UNAIMED;
	}
	arrivals_check(o, j->id);
	group_when_empty(&j->work, job_over, j);
}

/* --- a job: its steps --- */

static void on_tick(void *data)
{
	struct output_job *j = data;

	loop_timer_set(&j->tick, ORDER_TICK_MS);
	order_tick(j->order);
	job_wake(j);
}

/* True if the disk delays lines of a fetched log of J. */
static bool job_is_delayed(const struct output_job *j)
{
	for (const struct output_log *l = j->logs; l; l = l->hh.next)
		if (l->fetched &&
		    (l->life == LOG_MAKING || l->life == LOG_READING || l->writers > 0))
			return true;
	return false;
}

/* Move chunks from the order to the index. Return true if more may follow immediately. */
static bool job_merge(struct output_job *j)
{
	struct output *o = j->output;
	uint64_t bytes = 0, lines = 0;
	struct order_source *s;
	struct chunk p;

	/* After order_drain, the order does not wait for lines that the disk delays, so wait. */
	if (o->stopping && job_is_delayed(j))
		return false;
	while (bytes < OUTPUT_STEP && index_room(j->index) > 0 && order_next(j->order, &s, &p)) {
		struct output_log *l = order_data(s);

		index_append(j->index, l->number, &p);
		bytes += p.length;
		lines += p.lines;
		if (l->seen < l->size || l->ending)
			log_queue(l);
		/* First read the rest of L: lines of other logs must not overtake it. */
		if (l->fetched && l->seen < l->size && order_is_empty(s))
			break;
	}
	atomic_fetch_add_explicit(&o->captured_bytes, bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&o->captured_lines, lines, memory_order_relaxed);
	return index_room(j->index) > 0 && order_may_go(j->order);
}

/* Show readers the part of the index that is on disk. */
static void job_publish(struct output_job *j)
{
	uint64_t bytes = index_bytes(j->index);

	if (bytes == j->published)
		return;
	room_add(j->output->room, (int64_t)(bytes - j->published));
	j->published = bytes;
	file_publish(j->merged, index_written(j->index));
	file_notify(j->merged);
}

static void on_index_written(void *data, int err)
{
	struct output_job *j = data;

	if (err < 0)
		job_refused(j, err);
	j->trouble = err < 0 ? TROUBLE_FAILING : TROUBLE_NONE;
	j->retries = err < 0 ? j->retries : 0;
	job_publish(j);
	for (struct output_log *l = j->logs; l; l = l->hh.next) {
		if (l->life != LOG_FED)
			continue;
		if (err < 0)
			log_call_ended(l);
		log_queue(l);
	}
	job_wake(j);
}

static void job_write(struct output_job *j)
{
	if (j->trouble != TROUBLE_FAILING)
		index_write(j->index, &j->work, on_index_written, j);
}

/* True if the index on disk has all output of J's logs. */
static bool job_is_whole(const struct output_job *j)
{
	return j->state == JOB_OPEN && j->n_live == 0 &&
	       index_written(j->index)->records == index_appended(j->index);
}

/* Advance J and its logs as far as possible without waiting. */
static void job_move(struct output_job *j)
{
	struct output_log *l;
	bool more = false;

	while ((l = j->queue)) {
		DL_DELETE(j->queue, l);
		l->prev = NULL;
		log_step(l);
	}
	if (j->state != JOB_OPEN)
		return;
	more = job_merge(j);
	job_write(j);
	if (more)
		job_wake(j);
	if (!order_waits(j->order))
		loop_timer_stop(&j->tick);
	else if (!loop_timer_is_set(&j->tick))
		loop_timer_set(&j->tick, ORDER_TICK_MS);
	/* When the index has all output of J, end the merged log's last line, then the log. */
	if (j->end != END_REQUESTED || j->unmarking || !job_is_whole(j))
		return;
	if (index_end_line(j->index)) {
		job_write(j);
		return;
	}
	j->end = END_DONE;
	j->unmarking = true;
	j->unmark = (struct work){.run = unmark_work,
				  .done = unmark_done,
				  .data = j,
				  .group = &j->work};
	work_start(&j->unmark, j->output->loop);
	file_end(j->merged);
}

static void job_step(void *data)
{
	struct output_job *j = data;

	j->posted = false;
	group_leave(&j->work);
	if (j->state == JOB_GONE || j->output->stopped)
		return;
	if (j->state == JOB_NEW)
		job_load(j);
	job_move(j);
	arrivals_check(j->output, j->id);
	if (j->output->stopping)
		loop_post(j->output->loop, stop_if_drained, j->output);
	if (j->closed && j->end != END_REQUESTED)
		return job_go(j);
}

/* --- jobs: public functions --- */

struct output_job *output_job_open(struct output *o, const char *id)
{
	struct output_job *j = find_job(o, id);

	if (j) {
		j->closed = false;
		return j;
	}
	if (!spec_name_is_file(id)) {
		errno = EINVAL;
		return NULL;
	}
	j = new0(struct output_job);
	j->output = o;
	j->id = text_copy(id);
	group_init(&j->work, o->loop);
	loop_timer_init(&j->tick, o->loop, on_tick, j);
	loop_timer_init(&j->retry, o->loop, on_retry, j);
	j->order = order_new();
	j->merged = file_get(o->files, id, NULL);
	file_begin(j->merged);
	HASH_ADD_KEYPTR(hh, o->jobs, j->id, strlen(j->id), j);
	job_load(j);
	return j;
}

void output_job_end(struct output_job *j)
{
	if (j->end == END_NONE)
		j->end = END_REQUESTED;
	job_wake(j);
}

bool output_is_merged(const struct output *o, const char *id)
{
	const struct output_job *j = find_job(o, id);

	return !j || j->retries > OUTPUT_RETRIES || (job_is_whole(j) && j->end != END_REQUESTED);
}

void output_job_resume(struct output_job *j)
{
	j->end = END_NONE;
	file_begin(j->merged);
}

void output_job_close(struct output_job *j)
{
	if (!j)
		return;
	j->closed = true;
	for (struct output_log *l = j->logs; l; l = l->hh.next)
		l->ended = NULL;
	/* After output_job_end, J remains until its index is complete. */
	if (j->end != END_NONE && !j->output->stopped)
		job_wake(j);
	else
		job_go(j);
}

/* --- logs: public functions --- */

int output_log_begin(struct output_job *j, const char *key, const char *prefix, bool anew)
{
	struct output_log *l = find_log(j, key);

	if (!merge_key_is_valid(key, prefix ? prefix : ""))
		return -EINVAL;
	if (!l) {
		l = new0(struct output_log);
		l->job = j;
		l->file = file_get(j->output->files, j->id, key);
		l->prefix = prefix ? text_copy(prefix) : NULL;
		l->life = LOG_ENDED;
		HASH_ADD_KEYPTR(hh, j->logs, file_key(l->file), strlen(key), l);
	}
	l->fetched = j->output->fetch;
	l->anew = anew;
	l->ending = false;
	l->whole = 0;
	file_begin(l->file);
	if (l->life == LOG_ENDED)
		j->n_live++;
	if (l->life == LOG_UNREAD)
		l->life = LOG_LIVE;
	else if (l->life == LOG_ENDED || l->life == LOG_FED || l->life == LOG_UNMADE)
		l->life = j->state == JOB_REFUSED ? LOG_UNMADE : LOG_NEW;
	log_join(l);
	log_queue(l);
	return 0;
}

void output_log_grown(struct output_job *j, const char *key)
{
	struct output_log *l = find_log(j, key);

	if (l && !l->fetched)
		log_need_reading(l);
}

void output_log_expect(struct output_job *j, const char *key, bool expected)
{
	struct output_log *l = find_log(j, key);

	if (!l || l->life == LOG_FED || l->life == LOG_ENDED)
		return;
	l->expected = expected;
	if (l->source)
		order_expect(l->source, expected);
	job_wake(j);
}

void output_log_deny(struct output_job *j, const char *key, bool denied)
{
	struct output_log *l = find_log(j, key);
	bool all = true;

	if (!l || file_is_denied(l->file) == denied)
		return;
	file_deny(l->file, denied);
	for (const struct output_log *other = j->logs; other; other = other->hh.next)
		all &= file_is_denied(other->file) || !other->prefix;
	file_deny(j->merged, all);
	file_notify(l->file);
	file_notify(j->merged);
}

void output_log_end(struct output_job *j, const char *key, loop_fn fn, void *data)
{
	struct output_log *l = find_log(j, key);

	assert(l);
	l->ended = fn;
	l->ended_data = data;
	if (l->life == LOG_ENDED) {
		log_call_ended(l);
		return;
	}
	l->ending = true;
	log_need_reading(l);
}

/* --- functions for writers (feeder.h) --- */

struct feeder output_log_feeder(struct output_job *j, const char *key)
{
	struct output_log *l = find_log(j, key);
	struct output *o = j->output;

	assert(l);
	l->fetched = true;
	return (struct feeder){l, j->id, files_dir(o->files), o->loop, o->room, &o->pending};
}

void output_log_when_open(struct output_log *l, loop_fn fn, void *data)
{
	l->opened = fn;
	l->opened_data = data;
	if (l->life != LOG_NEW && l->life != LOG_MAKING)
		log_call_opened(l);
}

void output_log_enter(struct output_log *l)
{
	l->writers++;
	group_enter(&l->job->work);
}

void output_log_leave(struct output_log *l)
{
	l->writers--;
	if (l->ending)
		log_queue(l);
	group_leave(&l->job->work);
}

/* --- removing --- */

void output_job_remove(struct output *o, const char *id, room_fn done, void *data)
{
	struct room_removal *r = room_removal_new(o->room, id, done, data);
	struct output_job *j = find_job(o, id);

	assert(!j || j->closed);
	/*
	 * Call files_cut now instead of after the removal. Otherwise a fetch might end a log in the
	 * meantime, and files_cut skips logs that have ended.
	 */
	files_cut(o->files, id);
	if (j)
		job_go(j);
	j = find_gone(o, id);
	/* Work in progress may still create files of the job. */
	if (!j || j->gone)
		return room_remove(r);
	j->gone = room_remove;
	j->gone_data = r;
}

/* --- readers --- */

/* Called when a fetch of the file DATA is done. */
static void fetched(void *data)
{
	struct file *f = data;
	struct output *o = file_owner(f);
	struct output_job *j = find_job(o, file_id(f));

	if (file_fetch(f, -1) == 0) {
		/* No byte will arrive if the log has not begun, or if its job was removed. */
		if (!j || !file_is_listed(f) ||
		    (file_key(f) ? !find_log(j, file_key(f)) : j->merged != f))
			file_end(f);
		arrivals_check(o, file_id(f));
	}
	file_unref(f);
}

static void fetch_here(void *data)
{
	struct file *f = data;
	struct output *o = file_owner(f);

	if (o->stopped)
		return fetched(f);
	return o->fetch(o->fetch_data, file_id(f), file_key(f), fetched, f);
}

static struct file *find_file(struct output *o, const char *id, const char *key)
{
	char path[FOLDER_PATH_MAX];

	if (!spec_name_is_file(id) || (key && !spec_name_is_file(key)) ||
	    !folder_path(path, id, "lines", key ? key : ""))
		return NULL;
	return file_get(o->files, id, key);
}

int output_log_kept(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log **ret)
{
	struct file *f = find_file(o, id, key);
	int err = f ? file_open(f, form, ret) : -ENOENT;

	file_unref(f);
	return err;
}

int output_log(struct output *o, const char *id, const char *key, enum log_form form,
	       struct log **ret)
{
	int err = output_log_kept(o, id, key, form, ret);
	struct file *f;

	if (err || !o->fetch)
		return err;
	f = file_ref(log_file(*ret));
	file_fetch(f, 1);
	loop_post(o->loop, fetch_here, f);
	return 0;
}

int output_log_stat(struct output *o, const char *id, const char *key, enum log_form form,
		    struct log_stat *ret)
{
	struct file *f = find_file(o, id, key);
	int err = f ? file_stat(f, form, ret) : -ENOENT;

	file_unref(f);
	return err;
}

bool output_is_read(struct output *o, const char *id)
{
	struct file *f = find_file(o, id, NULL);
	bool ret = f && file_is_read(f);

	file_unref(f);
	return ret;
}

/* --- the output of all jobs --- */

static int open_dir(const char *dir)
{
	int err = folder_make_one(AT_FDCWD, dir);
	cleanup_fd int fd = err < 0 ? err : disk_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY);

	if (fd < 0)
		return fd;
	err = disk_access(fd, ".", R_OK | W_OK | X_OK);
	/* On a read-only disk, existing output can still be read. */
	return err < 0 && err != -EROFS ? err : take_fd(&fd);
}

int output_new(struct loop *loop, const char *state_dir, const struct output_events *events,
	       struct output **ret, char **ret_text)
{
	cleanup_free char *dir = text_print("%s/output", state_dir);
	int fd = open_dir(dir);
	struct output *o;

	if (fd < 0) {
		*ret_text = text_print("can't store output in %s: %s", dir, strerror(-fd));
		return fd;
	}
	o = new0(struct output);
	o->loop = loop;
	o->files = files_new(o, fd, events);
	o->room = room_new(loop, o->files);
	*ret = o;
	return 0;
}

void output_set_fetch(struct output *o, output_fetch_fn fetch, void *data)
{
	o->fetch = fetch;
	o->fetch_data = data;
	files_expect_more(o->files);
}

void output_start(struct output *o)
{
	room_count(o->room);
}

/* Finish the stop. The next start adds the output that the merged logs lack. */
static void stop_now(void *data)
{
	struct output *o = data;

	if (o->stopped)
		return;
	o->stopped = true;
	loop_timer_stop(&o->late);
	for (struct output_job *j = o->jobs; j; j = j->hh.next) {
		loop_timer_stop(&j->tick);
		loop_timer_stop(&j->retry);
	}
	arrivals_check(o, NULL);
	return o->over(o->over_data);
}

/* True if J's merged log will be complete soon: all logs are ending, and the disk works. */
static bool job_is_ending(const struct output_job *j)
{
	if (j->end != END_REQUESTED || loop_timer_is_set(&j->retry))
		return false;
	for (const struct output_log *l = j->logs; l; l = l->hh.next)
		if (!l->ending)
			return false;
	return true;
}

/*
 * Finish the stop, unless a merged log still lacks output or its end. Do not wait for a merged log
 * if the last write of its index has failed.
 */
static void stop_if_drained(void *data)
{
	struct output *o = data;

	if (!o->stopping || o->stopped)
		return;
	for (const struct output_job *j = o->jobs; j; j = j->hh.next)
		if (j->state == JOB_OPEN && j->trouble != TROUBLE_FAILING &&
		    (order_waits(j->order) ||
		     index_written(j->index)->records < index_appended(j->index) ||
		     job_is_ending(j)))
			return;
	return stop_now(o);
}

void output_stop(struct output *o, loop_fn fn, void *data)
{
	o->stopping = true;
	o->over = fn;
	o->over_data = data;
	loop_timer_init(&o->late, o->loop, stop_now, o);
	loop_timer_set(&o->late, OUTPUT_DRAIN_MS);
	for (struct output_job *j = o->jobs; j; j = j->hh.next) {
		order_drain(j->order);
		job_wake(j);
	}
	loop_post(o->loop, stop_if_drained, o);
}

void output_free(struct output *o)
{
	struct output_job *j, *next;

	if (!o)
		return;
	HASH_ITER(hh, o->jobs, j, next) {
		HASH_DEL(o->jobs, j);
		job_free(j);
	}
	LL_FOREACH_SAFE(o->gone, j, next) {
		job_free(j);
	}
	room_free(o->room);
	files_unref(o->files);
	free(o);
}

uint64_t output_bytes(struct output *o)
{
	return room_bytes(o->room);
}

void output_captured(struct output *o, uint64_t *ret_bytes, uint64_t *ret_lines)
{
	*ret_bytes = atomic_load(&o->captured_bytes);
	*ret_lines = atomic_load(&o->captured_lines);
}
