/* SPDX-License-Identifier: MIT */
/* Logs on disk and their readers; see file.h. Descriptors are open while there are readers. */
#include "backend/output/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <uthash.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/lock.h"
#include "backend/output/folder.h"
#include "backend/output/merged.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

struct log {
	struct file *file;
	enum log_form form;
	bool opened;		  /* a reader has opened this form; under the lock */
	struct stamp_place size;  /* where log_size continues to count lines; under the lock */
	struct stamp_place place; /* where the next read probably begins; under the lock */
};

struct files {
	void *owner;
	int dir_fd;
	struct output_events events;
	bool expect_more;
	atomic_uint refs;
	struct lock lock;
	struct file *table; /* under the lock */
};

struct file {
	struct files *all; /* with a reference */
	char *name;	   /* "ID/KEY"; "ID/" for the merged log */
	char *id;
	const char *key; /* points into NAME; NULL for the merged log */
	struct log forms[2];
	atomic_bool ended, denied;
	atomic_bool cut; /* removed before the log had ended */
	atomic_uint fetching;
	atomic_uint_least64_t size; /* largest size so far */

	/* The members below are under the lock. */
	unsigned refs; /* including those of readers */
	unsigned readers;
	bool listed;
	/*
	 * FOUND: no job has begun the log in this run of kxfs. BEGUN: a job has begun the log.
	 * PUBLISHED: the job has also set INDEX.
	 */
	enum { FOUND, BEGUN, PUBLISHED } origin;
	UT_hash_handle hh;
	int fd, lines_fd;	 /* -1 while there are no readers */
	struct merged *merged;	 /* NULL while there are no readers */
	struct index_size index; /* size on disk, if PUBLISHED */
};

/* --- the table --- */

struct files *files_new(void *owner, int dir_fd, const struct output_events *events)
{
	struct files *all = new0(struct files);

	all->owner = owner;
	all->dir_fd = dir_fd;
	all->events = *events;
	all->lock = (struct lock)LOCK_INIT;
	atomic_store(&all->refs, 1);
	return all;
}

void files_unref(struct files *all)
{
	if (!all || atomic_fetch_sub(&all->refs, 1) > 1)
		return;
	close(all->dir_fd);
	free(all);
}

int files_dir(const struct files *all)
{
	return all->dir_fd;
}

void files_expect_more(struct files *all)
{
	all->expect_more = true;
}

static struct file *file_new(struct files *all, const char *id, const char *key)
{
	struct file *f = new0(struct file);

	atomic_fetch_add(&all->refs, 1);
	f->all = all;
	f->name = text_print("%s/%s", id, key ? key : "");
	f->id = text_copy(id);
	f->key = key ? f->name + strlen(id) + 1 : NULL;
	f->fd = f->lines_fd = -1;
	f->forms[LOG_PLAIN] = (struct log){.file = f, .form = LOG_PLAIN};
	f->forms[LOG_STAMPED] = (struct log){.file = f, .form = LOG_STAMPED};
	atomic_store(&f->ended, !all->expect_more);
	return f;
}

static void file_free(struct file *f)
{
	if (!f)
		return;
	assert(!f->merged);
	files_unref(f->all);
	free(f->name);
	free(f->id);
	free(f);
}

struct file *file_get(struct files *all, const char *id, const char *key)
{
	struct file *fresh = file_new(all, id, key), *f;

	{
		lock_scope(&all->lock);
		HASH_FIND_STR(all->table, fresh->name, f);
		if (!f) {
			f = take_ptr(fresh);
			HASH_ADD_KEYPTR(hh, all->table, f->name, strlen(f->name), f);
			f->listed = true;
		}
		f->refs++;
	}
	file_free(fresh);
	return f;
}

struct file *file_ref(struct file *f)
{
	lock_scope(&f->all->lock);
	f->refs++;
	return f;
}

void file_unref(struct file *f)
{
	if (!f)
		return;
	{
		lock_scope(&f->all->lock);
		if (--f->refs > 0)
			return;
		if (f->listed)
			HASH_DEL(f->all->table, f);
	}
	file_free(f);
}

void files_cut(struct files *all, const char *id)
{
	lock_scope(&all->lock);
	for (struct file *f = all->table; f; f = f->hh.next)
		if (streq(f->id, id) && !file_has_ended(f))
			atomic_store(&f->cut, true);
}

void files_forget(struct files *all, const char *id)
{
	struct file *f, *next, **forgotten = NULL;
	size_t n = 0;

	files_cut(all, id);
	{
		lock_scope(&all->lock);
		HASH_ITER(hh, all->table, f, next) {
			if (!streq(f->id, id))
				continue;
			HASH_DEL(all->table, f);
			f->listed = false;
			f->refs++;
			forgotten = mem_more(forgotten, n, sizeof(struct file *));
			forgotten[n++] = f;
		}
	}
	for (size_t i = 0; i < n; i++) {
		f = forgotten[i];
		file_end(f);
		file_unref(f);
	}
	free(forgotten);
}

const char *file_id(const struct file *f)
{
	return f->id;
}

const char *file_key(const struct file *f)
{
	return f->key;
}

void *file_owner(const struct file *f)
{
	return f->all->owner;
}

bool file_is_listed(struct file *f)
{
	lock_scope(&f->all->lock);
	return f->listed;
}

/* --- functions that the log's job calls --- */

void file_begin(struct file *f)
{
	lock_scope(&f->all->lock);
	if (f->origin == FOUND)
		f->origin = BEGUN;
	atomic_store(&f->ended, false);
}

void file_end(struct file *f)
{
	if (!atomic_exchange(&f->ended, true))
		file_notify(f);
}

bool file_has_ended(const struct file *f)
{
	return atomic_load(&f->ended);
}

void file_deny(struct file *f, bool denied)
{
	atomic_store(&f->denied, denied);
}

bool file_is_denied(const struct file *f)
{
	return atomic_load(&f->denied);
}

void file_publish(struct file *f, const struct index_size *size)
{
	lock_scope(&f->all->lock);
	f->index = *size;
	f->origin = PUBLISHED;
}

uint64_t file_grow(struct file *f, uint64_t size)
{
	uint64_t seen = atomic_load(&f->size);

	while (seen < size && !atomic_compare_exchange_weak(&f->size, &seen, size))
		;
	return max_of(seen, size);
}

void file_notify(struct file *f)
{
	const struct output_events *events = &f->all->events;

	lock_assert_none();
	for (size_t i = 0; events->log && i < array_size(f->forms); i++) {
		bool opened;

		{
			lock_scope(&f->all->lock);
			opened = f->forms[i].opened;
		}
		if (opened)
			events->log(events->data, &f->forms[i]);
	}
}

unsigned file_fetch(struct file *f, int more)
{
	return atomic_fetch_add(&f->fetching, (unsigned)more) + (unsigned)more;
}

/* --- readers --- */

/* Open F on disk. If CREATE, create a missing file: a log can be opened before it has output. */
static int file_open_disk(struct file *f, bool create)
{
	int dir = f->all->dir_fd, err;
	cleanup_fd int fd = folder_open(dir, f->id, f->key ? "logs" : NULL,
					f->key ? f->key : "merged", O_RDONLY);
	struct stat st;

	if (fd == -ENOENT && create) {
		cleanup_fd int made = -1;

		err = folder_make(dir, f->id);
		made = err ? err : folder_open_log(dir, f->id, f->key, NULL);
		fd = made < 0 ? made : folder_open(dir, f->id, "logs", f->key, O_RDONLY);
	}
	err = fd < 0 ? fd : disk_stat(fd, "", &st);
	if (err < 0)
		return err;
	return S_ISREG(st.st_mode) ? take_fd(&fd) : -EIO;
}

/* True if F's file may still be created. */
static bool file_may_appear(struct file *f)
{
	lock_scope(&f->all->lock);
	return f->all->expect_more || f->origin != FOUND;
}

/*
 * Return the descriptor of F's table of lines, or -1 if it can't be opened now. The table may be
 * created later, so each call tries again.
 */
static int file_lines(struct file *f)
{
	cleanup_fd int fd = -1;

	{
		lock_scope(&f->all->lock);
		if (f->lines_fd >= 0)
			return f->lines_fd;
	}
	fd = folder_open(f->all->dir_fd, f->id, "lines", f->key, O_RDONLY);
	lock_scope(&f->all->lock);
	if (f->lines_fd < 0 && fd >= 0)
		f->lines_fd = take_fd(&fd);
	return f->lines_fd;
}

/* Open what a reader of F in FORM needs, and count the reader. */
static int file_add_reader(struct file *f, enum log_form form, bool create)
{
	cleanup_fd int fd = file_open_disk(f, create);

	/* A job without output has no merged index. */
	if (fd < 0 && (f->key || fd != -ENOENT))
		return fd;
	{
		lock_scope(&f->all->lock);
		if (!f->key && !f->merged)
			f->merged = merged_new(&f->all->lock, f->all->dir_fd, f->id);
		else if (f->key && f->fd < 0)
			f->fd = take_fd(&fd);
		f->readers++;
		f->refs++;
	}
	/* Open the table of lines now, because a new file may have F's name later. */
	if (f->key && form == LOG_STAMPED)
		file_lines(f);
	return 0;
}

int file_open(struct file *f, enum log_form form, struct log **ret)
{
	int err = file_add_reader(f, form, f->key && file_may_appear(f));

	if (err < 0)
		return err;
	lock_scope(&f->all->lock);
	f->forms[form].opened = true;
	*ret = &f->forms[form];
	return 0;
}

bool file_is_read(struct file *f)
{
	lock_scope(&f->all->lock);
	return f->readers;
}

struct file *log_file(struct log *log)
{
	return log->file;
}

void log_unref(struct log *log)
{
	int fd = -1, lines_fd = -1;
	struct merged *merged = NULL;
	struct file *f;

	if (!log)
		return;
	f = log->file;
	{
		lock_scope(&f->all->lock);
		if (--f->readers == 0) {
			fd = take_fd(&f->fd);
			lines_fd = take_fd(&f->lines_fd);
			merged = take_ptr(f->merged);
		}
	}
	merged_free(merged);
	base_close_fd(&fd);
	base_close_fd(&lines_fd);
	file_unref(f);
}

/* --- size and bytes --- */

/* Get the size of the merged index that the job has published, or else read it from the disk. */
static int file_index(struct file *f, struct index_size *ret)
{
	cleanup_fd int fd = -1;
	int err;

	{
		lock_scope(&f->all->lock);
		*ret = f->index;
		if (f->origin == PUBLISHED)
			return 0;
	}
	fd = folder_open(f->all->dir_fd, f->id, NULL, "merged", O_RDONLY);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	err = index_size_read(fd, ret);
	lock_scope(&f->all->lock);
	if (f->origin == PUBLISHED)
		*ret = f->index;
	return err;
}

void file_hold(struct file *f)
{
	struct index_size size;

	{
		lock_scope(&f->all->lock);
		if (!f->merged)
			return;
		f->readers++;
		f->refs++;
	}
	merged_hold(f->merged);
	/* Read the size now, because a new index may have its name later. */
	if (file_index(f, &size) == 0)
		file_publish(f, &size);
	log_unref(&f->forms[LOG_PLAIN]);
}

/* A container's log has SIZE bytes as printed. Set *RET to its size in the form of LOG. */
static int log_size(struct log *log, uint64_t size, uint64_t *ret)
{
	struct file *f = log->file;
	cleanup_free struct stamper *s = NULL;
	struct stamp_place place;
	int err;

	*ret = size;
	if (log->form == LOG_PLAIN)
		return 0;
	{
		lock_scope(&f->all->lock);
		place = log->size;
	}
	s = stamper_new(file_lines(f));
	err = stamped_size(f->fd, s, size, &place, ret);
	lock_scope(&f->all->lock);
	if (err == 0)
		log->size = place;
	return err;
}

int log_stat(struct log *log, struct log_stat *ret)
{
	struct file *f = log->file;
	struct index_size index;
	struct stat st;
	int err;

	ret->ended = atomic_load(&f->ended);
	if (!f->key) {
		err = file_index(f, &index);
		ret->size = err ? 0 : merged_size(&index, log->form);
		ret->mtime = err ? 0 : index.mtime;
		return err;
	}
	err = disk_stat(f->fd, "", &st);
	if (err < 0)
		return err;
	ret->mtime = spec_time_of(st.st_mtim);
	return log_size(log, file_grow(f, (uint64_t)st.st_size), &ret->size);
}

static ssize_t log_read_stamped(struct log *log, char *buf, size_t n, uint64_t off)
{
	struct file *f = log->file;
	cleanup_free struct stamper *s = stamper_new(file_lines(f));
	struct stamp_place place;
	struct stat st;
	ssize_t got = disk_stat(f->fd, "", &st);

	if (got < 0)
		return got;
	{
		lock_scope(&f->all->lock);
		place = log->place;
	}
	got = stamped_read(f->fd, s, file_grow(f, (uint64_t)st.st_size), &place, buf, n, off);
	lock_scope(&f->all->lock);
	log->place = place;
	return got;
}

ssize_t log_read(struct log *log, void *buf, size_t n, uint64_t off)
{
	struct file *f = log->file;
	struct index_size index;
	ssize_t got;
	int err;

	lock_assert_none();
	if (off > INT64_MAX || n == 0)
		return 0;
	n = min_of(n, (size_t)SSIZE_MAX);
	if (!f->key) {
		err = file_index(f, &index);
		return err ? err : merged_read(f->merged, &index, log->form, buf, n, off);
	}
	if (log->form == LOG_STAMPED)
		return log_read_stamped(log, buf, n, off);
	got = file_read_at(f->fd, buf, n, off);
	/* A reader must not get bytes beyond the reported size. */
	if (got > 0)
		file_grow(f, off + (uint64_t)got);
	return got;
}

void log_peek(struct log *log, struct log_stat *ret)
{
	struct file *f = log->file;

	ret->mtime = 0;
	ret->ended = atomic_load(&f->ended);
	ret->size = atomic_load(&f->size);
	if (f->key)
		return;
	lock_scope(&f->all->lock);
	ret->size = f->index.end;
}

bool log_is_denied(struct log *log)
{
	struct log_stat st;

	log_peek(log, &st);
	return st.size == 0 && atomic_load(&log->file->denied);
}

bool log_is_cut(struct log *log)
{
	return atomic_load(&log->file->cut);
}

int file_stat(struct file *f, enum log_form form, struct log_stat *ret)
{
	/* Read ENDED first: if it is true, no file will appear. */
	bool ended = atomic_load(&f->ended);
	int err = f->key ? file_add_reader(f, form, false) : 0;

	if (err == -ENOENT && file_may_appear(f)) {
		*ret = (struct log_stat){.ended = ended};
		return 0;
	}
	if (err < 0)
		return err;
	err = log_stat(&f->forms[form], ret);
	if (f->key)
		log_unref(&f->forms[form]);
	return err;
}
