/* SPDX-License-Identifier: MIT */
/* Records of names, written and read, and what is synced; see save.h. */
#include "fs/submit/save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/loop.h"
#include "fs/vfs/fs.h"
#include "spec/base/mem.h"

/* Bytes of STATE/submit.reported, a number. */
#define REPORTED_MAX 32
/* How long names are collected before they are synced together. */
#define SYNC_MS 500

struct sync_name {
	char *name;
	struct sync_name *next;
};

/* Of the I/O thread, but at the start. */
struct saver {
	int64_t reported; /* ns: launches up to then have their verdict */
	struct sync_name *waiting;
	struct loop_timer *timer;  /* until they are synced */
	struct sync_name *running; /* of the pool; NULL: nothing runs */
};

/* --- to the disk; I/O thread --- */

static void save_now(struct submit *s, const char *name)
{
	struct record r cleanup(record_clear) = {0};
	int64_t time;
	int err;

	uploads_fill_record(s->uploads, name, &r);
	verdict_fill_record(s->verdicts, name, &r);
	err = records_write(s->records, name, &r, &time);
	if (err)
		diag(DIAG_WARNING, "what became of %s/%s will be lost at the next mount: %s",
		     s->name, name, strerror(-err));
	else
		verdict_recorded(s->verdicts, name, time);
}

struct save {
	struct submit *s;
	char *name;
};

static void save_on_post(void *data)
{
	struct save *save = data;

	save_now(save->s, save->name);
	free(save->name);
	free(save);
}

void save_name(struct submit *s, const char *name)
{
	struct save *save;

	if (loop_is_here(s->fs->loop)) {
		save_now(s, name);
		return;
	}
	save = new0(struct save);
	save->s = s;
	save->name = text_copy(name);
	loop_post(s->fs->loop, save_on_post, save);
}

/* --- until when all have their verdict --- */

static char *reported_path(const struct submit *s)
{
	return text_print("%s.reported", s->dir);
}

/*
 * The time stands in a file of its own, so that it outlives every record. It is written over the one before it, in as
 * many digits: a new file in the place of the old one would cost each launch an inode and a block.
 */
static void reported_write(struct submit *s)
{
	char *path cleanup_free = reported_path(s);
	char text[REPORTED_MAX];
	int n = snprintf(text, sizeof(text), "%020" PRId64 "\n", s->saver->reported);
	int fd cleanup_fd =
		open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
	int err = fd < 0 ? -errno : file_pwrite_all(fd, text, (size_t)n, 0);

	if (!err && ftruncate(fd, n) < 0) /* it may have been damaged */
		err = -errno;
	if (err)
		diag(DIAG_WARNING, "%s can't be written: %s", path, strerror(-err));
}

static void reported_update(void *data)
{
	struct submit *s = data;

	s->saver->reported =
		max_of(s->saver->reported, verdicts_reported_until(s->verdicts, loop_time_ns()));
	reported_write(s);
}

void save_reported(struct submit *s)
{
	loop_post(s->fs->loop, reported_update, s);
}

/* If the time can't be read, only names with a pending launch take reports of the backend as news. */
static int64_t reported_load(const struct submit *s)
{
	char *path cleanup_free = reported_path(s);
	char *text cleanup_free = NULL;
	int64_t now = loop_time_ns(), until;
	size_t len = 0;
	int err = file_read(path, REPORTED_MAX, &text, &len);

	if (err == -ENOENT)
		return 0; /* nothing was launched yet, or a power cut came right after the first launch */
	return err || sscanf(text, "%" SCNd64, &until) != 1 || until < 0 || until > now ? now
											: until;
}

/* --- syncing; the list is the I/O thread's --- */

static void sync_path(const char *dir, const char *name, int flags)
{
	char *path cleanup_free = *name ? text_print("%s/%s", dir, name) : text_copy(dir);
	int fd cleanup_fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | flags);

	/* A file that is gone needs no sync, and nobody waits for an error any more. */
	if (fd >= 0 && fsync(fd) < 0)
		diag(DIAG_WARNING, "%s can't be synced: %s", path, strerror(errno));
}

static void sync_work(void *data)
{
	const struct submit *s = data;
	const struct sync_name *n;
	char *reported cleanup_free = reported_path(s);
	const char *records = records_path(s->records);

	LL_FOREACH(s->saver->running, n) {
		sync_path(s->dir, n->name, 0);
		sync_path(records, n->name, 0);
	}
	sync_path(reported, "", 0);
	sync_path(s->dir, "", O_DIRECTORY);
	sync_path(records, "", O_DIRECTORY);
	sync_path(s->config.state_dir, "", O_DIRECTORY);
}

static void sync_names_free(struct sync_name *list)
{
	struct sync_name *n, *next;

	LL_FOREACH_SAFE(list, n, next)
	{
		free(n->name);
		free(n);
	}
}

static void sync_soon(struct submit *s);

static void sync_done(void *data)
{
	struct submit *s = data;

	sync_names_free(take_ptr(s->saver->running));
	sync_soon(s);
}

static void sync_start(void *data)
{
	struct submit *s = data;

	loop_timer_free(take_ptr(s->saver->timer));
	s->saver->running = take_ptr(s->saver->waiting);
	loop_work(s->fs->loop, sync_work, sync_done, s);
}

/*
 * Names are synced together, one piece of work at a time: the pool stays free for others, and the next submissions,
 * which wait for what they sync themselves, do not wait for this.
 */
static void sync_soon(struct submit *s)
{
	struct saver *saver = s->saver;

	if (saver->waiting && !saver->running && !saver->timer)
		saver->timer = loop_timer_new(s->fs->loop, SYNC_MS, 0, sync_start, s);
}

static void sync_name(struct submit *s, const char *name)
{
	struct sync_name *n = new0(struct sync_name);

	n->name = text_copy(name);
	LL_PREPEND(s->saver->waiting, n);
	sync_soon(s);
}

void save_answered(struct submit *s, const char *name)
{
	if (!s->dry)
		reported_update(s);
	sync_name(s, name);
}

/* --- from the disk --- */

/* The record can't be read. It may have said that the file was launched, so the file is not launched again. */
static void save_load_damaged(struct submit *s, const char *name, int err)
{
	struct upload *u cleanup_upload = upload_find(s->uploads, name);

	records_aside(s->records, name, err);
	if (u)
		upload_recover(u, NULL, 0);
}

/* The last mount ended while somebody was writing NAME. What is there of it was never launched. */
static void save_load_unfinished(struct submit *s, const char *name)
{
	struct upload *u cleanup_upload = upload_find(s->uploads, name);
	char *text cleanup_free = NULL;
	struct stat st;

	if (u && upload_size(u) > 0) {
		upload_stat(u, &st);
		text = text_print(
			"%s: kxfs ended while this was being written, so it may be only a part: nothing was "
			"launched. Write it again.",
			name);
		verdict_refused(s->verdicts, name, verdicts_next(s->verdicts), text,
				(struct record_owner){st.st_uid, st.st_gid});
	}
	save_now(s, name);
}

static void save_load_one(struct submit *s, const char *name)
{
	struct record r cleanup(record_clear) = {0};
	int err = submit_name_check(name) < 0 ? -EINVAL : records_read(s->records, name, &r);

	if (err) {
		save_load_damaged(s, name, err);
		return;
	}
	uploads_take_record(s->uploads, name, &r);
	verdict_take_record(s->verdicts, name, &r);
	if (r.writing && !r.pending)
		save_load_unfinished(s, name);
}

int save_load(struct submit *s, struct saver **ret)
{
	char **names cleanup_free = NULL;
	size_t n = 0;
	int err = records_list(s->records, &names, &n);

	for (size_t i = 0; i < n; i++) {
		save_load_one(s, names[i]);
		free(names[i]);
	}
	*ret = new0(struct saver);
	(*ret)->reported = reported_load(s);
	return err;
}

int64_t save_reported_until(const struct submit *s)
{
	return s->saver->reported;
}

void save_end(struct submit *s)
{
	struct saver *saver = s->saver;

	if (!saver)
		return;
	saver->running = take_ptr(saver->waiting);
	if (saver->running)
		sync_work(s);
	sync_names_free(saver->running);
	free(saver);
}
