/* SPDX-License-Identifier: MIT */
/* Writes and reads files and records, and syncs them; see save.h. */
#include "fs/submit/save.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/loop.h"
#include "backend/base/work.h"
#include "fs/vfs/fs.h"
#include "spec/base/mem.h"

/* The most bytes of STATE/submit.reported, a number. */
#define REPORTED_MAX 32
/* How long names are collected before they are synced together. */
#define SYNC_MS 500

struct sync_name {
	char *name;
	struct sync_name *next;
};

/* Its members belong to the I/O thread, except during the start. */
struct saver {
	struct work_queue queue;
	struct sync_name *waiting;
	struct sync_name *unwritten; /* names whose record the disk did not take */
	bool due;		     /* REPORTED has to be written */
	struct loop_timer timer;     /* runs until they are synced */
	bool syncing;		     /* a sync is under way */
	struct sync_name *running;   /* the names that the pool syncs */
	uint64_t reported;	     /* the number that the pool writes */
	bool told; /* for the pool: all verdicts up to REPORTED are in their records */
	struct work sync;
};

/* --- the queue --- */

/* What is done, beside enum save_what. */
enum { RECORD = SAVE_TEXT + 1, NOTHING };

struct save {
	struct work work;
	struct submit *s;
	int what;
	struct upload *file; /* a reference; NULL: no file is concerned */
	char *text;	     /* the text of enum save_what; with RECORD the name */
	struct record record;
	char digest[RECORD_DIGEST];
	save_fn fn;
	void *data;
};

/* Write R, the record of NAME, whose file is FILE (NULL: there is none). */
static int write_record(const struct submit *s, const char *name, struct record *r,
			struct upload *file)
{
	/* The file's number is known once it is on disk; a file that is not there yet can't have been launched. */
	r->launched_ino = r->is_launched && file ? upload_ino(file) : 0;
	return launches_write(s->records, name, r);
}

static char *reported_path(const struct submit *s)
{
	return text_print("%s.reported", s->dir);
}

/*
 * The number stands in a file of its own, so that it outlives every record. It is written over the last one, with as
 * many digits: a new file for each launch would cost an inode and a block.
 */
static int write_reported(const char *path, uint64_t reported)
{
	char text[REPORTED_MAX];
	int n = snprintf(text, sizeof(text), "%020" PRIu64 "\n", reported);
	int fd cleanup_fd = disk_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_NONBLOCK);
	int err = fd < 0 ? fd : file_pwrite_all(fd, text, (size_t)n, 0);

	return err ? err : disk_truncate(fd, (uint64_t)n); /* the file may have been damaged */
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
		return upload_load(save->file, save->digest);
	case SAVE_RENAME:
		return upload_save_name(save->file, save->text);
	case SAVE_TEXT:
		return upload_save_text(save->file, save->text);
	case RECORD:
		return write_record(save->s, save->text, &save->record, save->file);
	default:
		return 0;
	}
}

static void save_run(void *data)
{
	struct save *save = data;

	save->work.err = save_what(save);
}

/*
 * Names are synced together, and only one such work is under way: so the pool stays free for others, and the next
 * submissions, which wait for what they sync themselves, do not wait for this.
 */
static void sync_soon(const struct submit *s)
{
	struct saver *saver = s->saver;

	if ((saver->waiting || saver->unwritten || saver->due) && atomic_load(&s->recovered) &&
	    !saver->syncing && !loop_timer_is_set(&saver->timer))
		loop_timer_set(&saver->timer, SYNC_MS);
}

/*
 * WRITTEN: the disk took the record of NAME. If it did not, that is tried again, and until then no further launch
 * counts as told.
 */
static void set_written(struct saver *saver, const char *name, bool written)
{
	struct sync_name *n = saver->unwritten;

	while (n && !streq(n->name, name))
		n = n->next;
	if (written && n) {
		LL_DELETE(saver->unwritten, n);
		LL_PREPEND(saver->waiting, n);
	} else if (!written && !n) {
		n = new0(struct sync_name);
		n->name = text_copy(name);
		LL_PREPEND(saver->unwritten, n);
	}
}

static void save_done(void *data)
{
	struct save *save = data;
	int err = save->work.err;

	if (save->what == RECORD) {
		set_written(save->s->saver, save->text, !err);
		if (err)
			sync_soon(save->s);
	}
	if (!err && *save->digest)
		names_loaded(save->s->names, save->file, save->digest);
	if (err && !save->fn)
		diag(DIAG_WARNING, "%s/%s can't be written: %s", save->s->name,
		     save->text ? save->text : "", strerror(-err));
	upload_unref(save->file);
	record_clear(&save->record);
	free(save->text);
	if (save->fn)
		save->fn(save->data, err);
	free(save);
}

static void save_begin(void *data)
{
	struct save *save = data;

	if (save->what == RECORD)
		names_record(save->s->names, save->text, &save->record, &save->file);
	save->work = (struct work){.run = save_run, .done = save_done, .data = save};
	work_enqueue(&save->work, save->s->fs->loop, &save->s->saver->queue);
}

static void save_start(struct submit *s, struct save save)
{
	struct save *copy = new0(struct save);

	*copy = save;
	copy->s = s;
	if (copy->file)
		upload_ref(copy->file);
	if (loop_is_here(s->fs->loop))
		save_begin(copy);
	else
		loop_post(s->fs->loop, save_begin, copy);
}

void save_file(struct submit *s, struct upload *u, enum save_what what, const char *text,
	       save_fn fn, void *data)
{
	char *copy = text ? text_copy(text) : NULL;

	save_start(s, (struct save){.what = what, .file = u, .text = copy, .fn = fn, .data = data});
}

void save_soon(struct submit *s, struct upload *u)
{
	if (upload_want_save(u))
		save_file(s, u, SAVE_BYTES, NULL, NULL, NULL);
}

void save_name(struct submit *s, const char *name, save_fn fn, void *data)
{
	save_start(s,
		   (struct save){.what = RECORD, .text = text_copy(name), .fn = fn, .data = data});
}

/* --- until when all have their verdict --- */

/* If the number is damaged, it is not known. */
static int reported_load(const struct submit *s, uint64_t *ret, char **ret_text)
{
	char *path cleanup_free = reported_path(s);
	char *text cleanup_free = NULL;
	size_t len = 0;
	int err = file_read(path, REPORTED_MAX, &text, &len);

	*ret = 0;
	if (err == -ENOENT || (!err && len == 0))
		/* Nothing was launched before, or a crash came right after the first launch. */
		return 0;
	if (err && file_fault_may_pass(err)) {
		*ret_text = text_print("%s can't be read: %s; to start without it, mv it elsewhere",
				       path, strerror(-err));
		return err;
	}
	if (err || sscanf(text, "%" SCNu64, ret) != 1)
		*ret = UINT64_MAX;
	return 0;
}

/* --- syncing; the list is the I/O thread's --- */

static void sync_path(const char *dir, const char *name, int flags)
{
	char *path cleanup_free = *name ? text_print("%s/%s", dir, name) : text_copy(dir);
	int fd cleanup_fd = disk_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | flags);
	int err = fd < 0 ? 0 : disk_sync(fd);

	/* A file that is gone needs no sync, and by now nobody waits for an error. */
	if (err)
		diag(DIAG_WARNING, "%s can't be synced: %s", path, strerror(-err));
}

/*
 * Sync all names, and only then write that they are told, if they are: the next start does not tell again what counts
 * as told.
 */
static void sync_run(void *data)
{
	const struct submit *s = data;
	const struct sync_name *n;
	char *reported cleanup_free = reported_path(s);
	const char *records = launches_path(s->records);
	int err;

	LL_FOREACH(s->saver->running, n) {
		sync_path(s->dir, n->name, 0);
		sync_path(records, n->name, 0);
	}
	sync_path(s->dir, "", O_DIRECTORY);
	sync_path(records, "", O_DIRECTORY);
	if (!s->dry && s->saver->told) {
		err = write_reported(reported, s->saver->reported);
		if (err)
			diag(DIAG_WARNING, "%s can't be written: %s", reported, strerror(-err));
		sync_path(reported, "", 0);
	}
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

static void sync_done(void *data)
{
	const struct submit *s = data;

	sync_free(take_ptr(s->saver->running));
	s->saver->syncing = false;
	sync_soon(s);
}

static void sync_begin(void *data, int err)
{
	struct submit *s = data;

	s->saver->told &= !s->saver->unwritten;
	if (!s->saver->told && !s->saver->running) {
		sync_done(s);
		return;
	}
	s->saver->sync = (struct work){.run = sync_run, .done = sync_done, .data = s};
	work_start(&s->saver->sync, s->fs->loop);
}

/* Take all names whose verdict is known by now. */
static void sync_take(struct submit *s)
{
	struct saver *saver = s->saver;

	saver->running = take_ptr(saver->waiting);
	saver->reported = names_reported(s->names);
	saver->told = !saver->unwritten;
	saver->due = false;
}

/* A message has said already that the disk does not take the record. */
static void on_again(void *data, int err)
{
}

/* The records of the names are written when the queue comes to this. */
static void sync_start(void *data)
{
	struct submit *s = data;
	const struct sync_name *n;

	s->saver->syncing = true;
	LL_FOREACH(s->saver->unwritten, n)
		save_name(s, n->name, on_again, NULL);
	sync_take(s);
	save_start(s, (struct save){.what = NOTHING, .fn = sync_begin, .data = s});
}

void save_answered(struct submit *s, const char *name)
{
	struct sync_name *n = new0(struct sync_name);

	n->name = text_copy(name);
	LL_PREPEND(s->saver->waiting, n);
	/* From now on the verdict counts as told; but during a start not all have been told yet. */
	if (atomic_load(&s->recovered))
		(void)names_reported(s->names);
	sync_soon(s);
}

void save_reported(struct submit *s)
{
	s->saver->due = !s->dry;
	sync_soon(s);
}

/* --- from the disk --- */

struct load {
	const struct submit *s;
	char *text; /* why the start fails; NULL if it does not, or if a whole directory can't be read */
};

static int load_file(void *data, int at, const char *name, unsigned char type)
{
	const struct submit *s = ((struct load *)data)->s;
	struct stat st;
	int err = disk_stat(at, name, &st);

	if (err)
		return err;
	if (S_ISREG(st.st_mode) && submit_name_check(name) == 0)
		names_add(s->names, name, upload_found(s->files, name, &st));
	else
		diag(DIAG_WARNING, "%s/%s: not a file of kxfs, ignored", s->dir, name);
	return 0;
}

static int load_record(void *data, const char *name)
{
	struct load *load = data;
	const struct submit *s = load->s;
	const char *dir = launches_path(s->records);
	struct record r cleanup(record_clear) = {0}, lost cleanup(record_clear) = {0};
	bool is_name = submit_name_check(name) == 0;
	int err = is_name ? launches_read(s->records, name, &r) : -EINVAL;
	struct upload *u cleanup_upload = NULL, *file cleanup_upload = NULL;
	char *text cleanup_free = NULL;

	if (!err) {
		names_take_record(s->names, name, &r);
		return 0;
	}
	if (file_fault_may_pass(err)) {
		load->text =
			text_print("%s/%s can't be read: %s; to start without that file, mv it "
				   "and %s/%s elsewhere",
				   dir, name, strerror(-err), s->dir, name);
		return err;
	}
	launches_aside(s->records, name, err);
	if (!is_name) {
		(void)launches_write(s->records, name, &lost);
		return 0;
	}
	/*
	 * The record may have said that the file was launched. So neither this mount nor a later one launches it again,
	 * or says that nothing was launched, until the backend reports a launch or the file is written again.
	 */
	u = names_file(s->names, name);
	if (u)
		names_claim(s->names, u, "");
	text = text_print(
		"%s: its record %s/%s %s, so kxfs does not know whether it was launched. Look for its job "
		"in jobs/ and history/ before you write it again: that launches a new job.",
		name, dir, name, file_fault(err));
	names_refused(s->names, name, names_next(s->names), text, s->us);
	names_record(s->names, name, &lost, &file);
	set_written(s->saver, name, write_record(s, name, &lost, file) == 0);
	/*
	 * This is synced now, since this mount may never come up: after another power cut the file would count as never
	 * launched.
	 */
	sync_path(dir, name, 0);
	sync_path(dir, "", O_DIRECTORY);
	return 0;
}

int save_open(struct submit *s, struct saver **ret, char **ret_text)
{
	struct saver *saver = new0(struct saver);
	struct load load = {.s = s};
	uint64_t reported;
	int err;

	*ret = saver;
	loop_timer_init(&saver->timer, s->fs->loop, sync_start, s);
	err = disk_list(AT_FDCWD, s->dir, load_file, &load);
	if (!err)
		err = launches_each(s->records, load_record, &load);
	if (!err)
		err = reported_load(s, &reported, &load.text);
	*ret_text = load.text;
	if (!err)
		names_set_reported(s->names, reported);
	return err;
}

void save_unfinished(struct submit *s)
{
	char *name;

	while (names_take_unfinished(s->names, &name)) {
		struct upload *u cleanup_upload = names_file(s->names, name);
		char *text cleanup_free = text_print(
			"%s: kxfs ended while this was being written, so it may be incomplete. "
			"Nothing was launched. Write it again.",
			name);
		struct stat st;

		upload_stat(u, NULL, &st);
		names_refused(s->names, name, names_next(s->names), text,
			      (struct record_owner){st.st_uid, st.st_gid});
		save_name(s, name, NULL, NULL);
		free(name);
	}
}

void save_end(struct submit *s)
{
	struct saver *saver = s->saver;

	if (!saver)
		return;
	/* A sync that is still under way hangs. */
	if (saver->waiting && atomic_load(&s->recovered) && !saver->syncing &&
	    !saver->queue.first) {
		sync_take(s);
		sync_run(s);
	}
	sync_free(saver->waiting);
	sync_free(saver->running);
	sync_free(saver->unwritten);
	free(saver);
}
