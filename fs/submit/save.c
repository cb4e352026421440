/* SPDX-License-Identifier: MIT */
/* Writes, reads and syncs files; see save.h. */
#include "fs/submit/save.h"

#include <errno.h>
#include <fcntl.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/loop.h"
#include "backend/base/work.h"
#include "fs/vfs/fs.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

/*
 * How long kxfs collects the names of files that must be synced, in ms. Then it syncs all these
 * files together.
 */
#define SYNC_MS 500

struct sync_name {
	char *name;
	struct sync_name *next;
};

/* All members belong to the I/O thread. */
struct saver {
	struct work_queue queue;
	struct sync_name *waiting;
	struct loop_timer timer;   /* starts the next sync */
	struct sync_name *running; /* the names whose files the pool is syncing */
	struct work sync;
};

/* --- the queue --- */

struct save {
	struct work work;
	struct submit *s;
	enum save_what what;
	struct upload *file; /* a reference */
	char *text;
	save_fn fn;
	void *data;
};

static int load(const struct save *save)
{
	const struct submit *s = save->s;
	bool found = upload_state(save->file) == CONTENT_FOUND;
	char digest[UPLOAD_DIGEST];
	uint64_t version;
	int err = upload_load(save->file, found ? &version : NULL, digest);
	bool known = !err && found && backend_knows_digest(s->config.backend, digest);

	if (!err && found)
		upload_set_state(save->file, version, known ? CONTENT_LAUNCHED : CONTENT_NEW);
	return err;
}

static int check(const struct save *save)
{
	char digest[UPLOAD_DIGEST];
	uint64_t version;
	int err = upload_load(save->file, &version, digest);

	return err || streq(digest, save->text) ? err : -ESTALE;
}

static int save_what(struct save *save)
{
	int err;

	switch (save->what) {
	case SAVE_BYTES:
		return upload_save(save->file);
	case SAVE_SYNC:
		err = upload_save(save->file);
		return err ? err : upload_sync(save->file);
	case SAVE_LOAD:
		return load(save);
	case SAVE_RENAME:
		return upload_save_name(save->file, save->text);
	case SAVE_TEXT:
		return upload_save_text(save->file, save->text);
	case SAVE_CHECK:
		return check(save);
	}
	return -EINVAL;
}

static void save_run(void *data)
{
	struct save *save = data;

	save->work.err = save_what(save);
}

static void save_done(void *data)
{
	struct save *save = data;
	int err = save->work.err;

	if (err && !save->fn)
		diag(DIAG_WARNING, "%s/%s can't be written: %s", save->s->name,
		     save->text ? save->text : "", strerror(-err));
	upload_unref(save->file);
	free(save->text);
	if (save->fn)
		save->fn(save->data, err);
	free(save);
}

static void save_begin(void *data)
{
	struct save *save = data;

	save->work = (struct work){.run = save_run, .done = save_done, .data = save};
	work_enqueue(&save->work, save->s->fs->loop, &save->s->saver->queue);
}

void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data)
{
	struct save *save = new0(struct save);

	*save = (struct save){.s = s, .what = what, .fn = fn, .data = data};
	save->file = upload_ref(u);
	save->text = text ? text_copy(text) : NULL;
	if (loop_is_here(s->fs->loop))
		save_begin(save);
	else
		loop_post(s->fs->loop, save_begin, save);
}

void save_soon(struct submit *s, struct upload *u)
{
	if (upload_want_save(u))
		save_file(s, u, SAVE_BYTES, NULL, NULL, NULL);
}

/* --- syncing --- */

static void sync_path(const char *dir, const char *name, int flags)
{
	char *path cleanup_free = *name ? text_print("%s/%s", dir, name) : text_copy(dir);
	int fd cleanup_fd = disk_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | flags);
	int err = fd < 0 ? 0 : disk_sync(fd);

	/*
	 * A file that can't be opened was removed, so it needs no sync. Other errors can only be
	 * logged, because the request has already been answered.
	 */
	if (err)
		diag(DIAG_WARNING, "%s can't be synced: %s", path, strerror(-err));
}

static void sync_run(void *data)
{
	const struct submit *s = data;
	const struct sync_name *n;

	LL_FOREACH(s->saver->running, n)
		sync_path(s->dir, n->name, 0);
	sync_path(s->dir, "", O_DIRECTORY);
	sync_path(s->config.state_dir, "", O_DIRECTORY);
}

static void sync_free(struct sync_name *list)
{
	struct sync_name *n, *next;

	LL_FOREACH_SAFE(list, n, next) {
		free(n->name);
		free(n);
	}
}

/*
 * Sync the waiting names after SYNC_MS. Only one sync runs at a time, so that other threads of the
 * pool can serve new launches.
 */
static void sync_soon(const struct submit *s)
{
	struct saver *saver = s->saver;

	if (saver->waiting && !saver->running && !loop_timer_is_set(&saver->timer))
		loop_timer_set(&saver->timer, SYNC_MS);
}

static void sync_done(void *data)
{
	const struct submit *s = data;

	sync_free(take_ptr(s->saver->running));
	sync_soon(s);
}

static void sync_start(void *data)
{
	struct submit *s = data;

	s->saver->running = take_ptr(s->saver->waiting);
	s->saver->sync = (struct work){.run = sync_run, .done = sync_done, .data = s};
	work_start(&s->saver->sync, s->fs->loop);
}

void save_launched(struct submit *s, const char *name)
{
	struct sync_name *n = new0(struct sync_name);

	n->name = text_copy(name);
	LL_PREPEND(s->saver->waiting, n);
	sync_soon(s);
}

/* --- start and end --- */

static int found_file(void *data, int at, const char *name, unsigned char type)
{
	const struct submit *s = data;
	/*
	 * If a file has a submitting name, an earlier mount has launched or refused the file. So a
	 * rename must not launch the file again.
	 */
	enum content_state state = spec_name_submits(name) ? CONTENT_LAUNCHED
				   : s->dry		   ? CONTENT_NEW
							   : CONTENT_FOUND;
	struct stat st;
	int err = disk_stat(at, name, &st);

	if (err)
		return err;
	if (S_ISREG(st.st_mode) && submit_name_check(name) == 0)
		names_add(s->names, name, upload_found(s->files, name, &st, state));
	else
		diag(DIAG_WARNING, "%s/%s: kxfs did not write this file and ignores it", s->dir,
		     name);
	return 0;
}

int save_open(struct submit *s)
{
	s->saver = new0(struct saver);
	loop_timer_init(&s->saver->timer, s->fs->loop, sync_start, s);
	return disk_list(AT_FDCWD, s->dir, found_file, s);
}

void save_end(struct submit *s)
{
	struct saver *saver = s->saver;

	if (!saver)
		return;
	/* If a sync is still running now, the disk hangs, so don't wait for it. */
	if (saver->waiting && !saver->running && !saver->queue.first) {
		saver->running = take_ptr(saver->waiting);
		sync_run(s);
	}
	sync_free(saver->waiting);
	sync_free(saver->running);
	free(saver);
}
