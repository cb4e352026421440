/* SPDX-License-Identifier: MIT */
/* Records on disk: reading and writing them, and the writer of one that changes. */
#include "backend/local/record_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/work.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

/* The largest possible record is much smaller than this. */
#define RECORD_MAX (64u << 20)
#define RETRY_MS   2000
#define RECORD	   "job.json"
#define ROOM	   (16u << 10)
#define ROOM_EACH  512

/* A file whose mtime says when the job became history. Its bytes mean nothing. */
#define MARK "history"

/*
 * The last member of the text on disk: a check sum (FNV-1a) of all bytes before it. A record with a changed digit would
 * still be a record, and might start a program that nobody submitted.
 */
#define SUM	 ",\"sum\":\"%016" PRIx64 "\"}\n"
#define SUM_SIZE 28

static void print_sum(const char *text, size_t len, char ret[SUM_SIZE])
{
	uint64_t hash = 14695981039346656037u;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ (unsigned char)text[i]) * 1099511628211u;
	snprintf(ret, SUM_SIZE, SUM, hash);
}

/* TEXT, which is taken over, with the check sum. */
static char *add_sum(char *text)
{
	size_t len = strlen(text) - strlen("}\n");
	char sum[SUM_SIZE];

	print_sum(text, len, sum);
	text = mem_grow(text, len + SUM_SIZE, 1);
	memcpy(text + len, sum, SUM_SIZE);
	return text;
}

static bool has_sum(const char *text, size_t len)
{
	char sum[SUM_SIZE];

	if (len < SUM_SIZE - 1)
		return false;
	len -= SUM_SIZE - 1;
	print_sum(text, len, sum);
	return memcmp(text + len, sum, SUM_SIZE - 1) == 0;
}

int record_mark(const char *state_dir, const char *key, int64_t time)
{
	cleanup_free char *path = file_path(state_dir, key, MARK);
	cleanup_free char *record = file_path(state_dir, key, RECORD);
	cleanup_fd int fd = -1;

	/*
	 * The mark is the record under a second name. A file of its own would need an inode, and after many removals
	 * ext4 searches half a millisecond for one that was not in use a moment ago.
	 */
	if (disk_touch(AT_FDCWD, record, time) == 0 &&
	    disk_link(AT_FDCWD, record, AT_FDCWD, path) == 0)
		return 0;
	fd = disk_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_NONBLOCK);
	return fd < 0 ? fd : disk_touch(fd, "", time);
}

int record_read(const char *state_dir, const char *key, struct spec_record **ret)
{
	cleanup_free char *path = file_path(state_dir, key, RECORD);
	cleanup(spec_record_freep) struct spec_record *rec = NULL;
	cleanup_free char *text = NULL, *mark = NULL;
	struct stat st;
	size_t len = 0;
	int err = file_read(path, RECORD_MAX, &text, &len);

	if (err == 0)
		err = spec_record_parse(text, len, &rec);
	if (err < 0)
		return err;
	if (!has_sum(text, len))
		return -EINVAL;
	/* A folder that somebody has copied holds the record of another job. */
	if (!streq(spec_job_key(rec->job), key) || !streq(rec->job->uid, key))
		return -EINVAL;
	mark = file_path(state_dir, key, MARK);
	if (rec->job->finished && disk_stat(AT_FDCWD, mark, &st) == 0 && S_ISREG(st.st_mode)) {
		rec->job->history = true;
		rec->job->changed = spec_time_of(st.st_mtim);
	}
	*ret = take_ptr(rec);
	return 0;
}

int record_read_app(const char *state_dir, const char *home, struct spec_record *rec)
{
	cleanup_free char *path = file_path(state_dir, spec_job_key(rec->job), "app.yaml");
	cleanup_free char *text = NULL;
	size_t len = 0;
	int err = file_read(path, SPEC_MAX_FILE, &text, &len);

	if (err == 0) {
		spec_record_read_app(rec, text, len, home);
	} else {
		cleanup_free char *fault = text_print("app.yaml can't be read: %s", strerror(-err));

		spec_set(&rec->fault, fault);
	}
	return err;
}

int record_write(const char *state_dir, const struct spec_record *rec)
{
	cleanup_free char *dir = file_path(state_dir, spec_job_key(rec->job), NULL);
	cleanup_free char *text = add_sum(spec_record_text(rec));

	return file_write(dir, RECORD, text, strlen(text));
}

int record_remove_begun(const char *dir)
{
	static const char *const names[] = {"app.yaml", ".app.yaml.new", ".job.json.new",
					    ".job.json.room"};

	return file_remove_dir(dir, names, array_size(names));
}

int record_write_first(const char *state_dir, const struct spec_record *rec)
{
	cleanup_free char *dir = file_path(state_dir, spec_job_key(rec->job), NULL);
	cleanup_free char *text = add_sum(spec_record_text(rec));
	size_t len = strlen(text);
	/* The record grows by transitions, and by what becomes of each replica. */
	int err = file_keep_room(dir, RECORD, 2 * len + ROOM + rec->job->n_replicas * ROOM_EACH);

	return err ? err : file_write(dir, RECORD, text, len);
}

/*
 *	step	 what is under way	    what ends it	    next
 *	IDLE	 nothing		    a change		    DUE
 *	DUE	 it is posted		    it is called	    WRITING; IDLE, if there is no text yet
 *	WRITING	 the pool writes TEXT	    it is written	    IDLE, or DUE for what has changed since
 *					    it can't be		    PAUSING; IDLE in the last mount's moments
 *	PAUSING	 RETRY			    it is due, or a change  DUE
 *	FREED	 as DUE, without an owner   it is called	    gone
 */
enum writer_step { IDLE, DUE, WRITING, PAUSING, FREED };

struct record_writer {
	struct loop *loop;
	char *dir;
	const struct record_writer_events *events;
	void *data;
	enum writer_step step;
	uint64_t change; /* number of the newest change */
	uint64_t taken;	 /* number of the newest change that is in TEXT or on disk */
	bool last;	 /* a failed write is not tried again */
	bool final;	 /* TEXT is of a job that is over */
	struct loop_timer retry;
	struct work work;
	char *text; /* what the pool writes */
};

static void writer_free(struct record_writer *w)
{
	free(w->text);
	free(w->dir);
	free(w);
}

void record_writer_free(struct record_writer *w)
{
	loop_timer_stop(&w->retry);
	if (w->step == DUE)
		w->step = FREED;
	else
		writer_free(w);
}

static void write_now(void *data)
{
	struct record_writer *w = data;

	if (w->step == FREED)
		return writer_free(w);
	w->step = IDLE;
	w->taken = w->change;
	w->text = w->events->text(w->data, &w->final);
	if (!w->text)
		return;
	w->step = WRITING;
	work_start(&w->work, w->loop);
}

static void make_due(void *data)
{
	struct record_writer *w = data;

	loop_timer_stop(&w->retry);
	w->step = DUE;
	loop_post(w->loop, write_now, w);
}

uint64_t record_writer_changed(struct record_writer *w)
{
	if (w->step == IDLE || w->step == PAUSING)
		make_due(w);
	return ++w->change;
}

void record_writer_last(struct record_writer *w)
{
	w->last = true;
	loop_timer_stop(&w->retry);
	if (w->step == PAUSING)
		w->step = IDLE;
}

static void write_work(void *data)
{
	struct record_writer *w = data;

	w->text = add_sum(w->text);
	w->work.err =
		(w->final ? file_write_last : file_write)(w->dir, RECORD, w->text, strlen(w->text));
}

static void write_done(void *data)
{
	struct record_writer *w = data;

	w->step = IDLE;
	free(take_ptr(w->text));
	if (w->change > w->taken) {
		make_due(w);
	} else if (w->work.err < 0 && !w->last) {
		w->step = PAUSING;
		loop_timer_set(&w->retry, RETRY_MS);
	}
	return w->events->written(w->data, w->work.err, w->taken, w->step != IDLE);
}

struct record_writer *record_writer_new(struct loop *loop, const char *dir,
					const struct record_writer_events *events, void *data)
{
	struct record_writer *w = new0(struct record_writer);

	w->loop = loop;
	w->dir = text_copy(dir);
	w->events = events;
	w->data = data;
	w->work = (struct work){.run = write_work, .done = write_done, .data = w};
	loop_timer_init(&w->retry, loop, make_due, w);
	return w;
}
