/* SPDX-License-Identifier: MIT */
/*
 * The files of submit/: their table by name, their bounds, and what of them lies in STATE/submit/.
 * That a file's content has been launched is kept there as the sticky bit of its mode, so that it
 * is known after a remount too, and by whatever name: content is never launched twice by a rename.
 */
#include <errno.h>
#include <fcntl.h>

#include "backend/diag.h"
#include "fs/options.h"
#include "fs/submit_impl.h"
#include "spec/limits.h"
#include "spec/name.h"

enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1])
{
	static const struct {
		const char *suffix;
		enum submit_name kind;
	} kinds[] = {
		{SUBMIT_JOB_SUFFIX, SUBMIT_NAME_JOB},
		{SUBMIT_ERROR_SUFFIX, SUBMIT_NAME_ERROR},
	};
	size_t len = strlen(name);

	for (size_t i = 0; i < array_size(kinds) && len <= NAME_MAX; i++) {
		size_t n = strlen(kinds[i].suffix);

		if (len <= n || !streq(name + len - n, kinds[i].suffix))
			continue;
		memcpy(ret_base, name, len - n);
		ret_base[len - n] = '\0';
		if (spec_name_submits(ret_base))
			return kinds[i].kind;
	}
	return SUBMIT_NAME_FILE;
}

int submit_name_check(const char *name)
{
	size_t max = NAME_MAX - (spec_name_submits(name) ? strlen(SUBMIT_ERROR_SUFFIX) : 0);
	char base[NAME_MAX + 1];

	if (strlen(name) > max)
		return -ENAMETOOLONG;
	/* Leading dots are for scratch files; all else as everywhere in the tree. */
	if (!spec_name_is_file(name + strspn(name, ".")))
		return -EINVAL;
	return submit_name_kind(name, base) == SUBMIT_NAME_FILE ? 0 : -EPERM;
}

/* --- under the lock --- */

static struct submit_file *file_by_name(struct submit *s, const char *name)
{
	struct submit_file *f;

	HASH_FIND_STR(s->files, name, f);
	return f;
}

/* What F counts for in the bound of all scratch files. */
static void file_charge(struct submit_file *f)
{
	bool counts = f->name ? !spec_name_submits(f->name) : f->holds > 0;
	uint64_t charge = counts ? f->size : 0;

	f->s->scratch += charge - f->charged;
	f->charged = charge;
}

static void file_attach(struct submit_file *f, char *name)
{
	f->name = name;
	HASH_ADD_KEYPTR(hh, f->s->files, f->name, strlen(f->name), f);
	f->s->changed = loop_time_ns();
	file_charge(f);
}

void submit_file_detach(struct submit_file *f)
{
	HASH_DEL(f->s->files, f);
	free(take_ptr(f->name));
	f->s->changed = loop_time_ns();
	file_charge(f);
}

/* --- references --- */

void submit_file_ref(struct submit_file *f)
{
	lock_scope(&f->s->lock);
	f->refs++;
}

void submit_file_unref(struct submit_file *f)
{
	if (!f)
		return;
	{
		lock_scope(&f->s->lock);
		if (--f->refs > 0)
			return;
	}
	assert(!f->name && f->fd < 0 && f->charged == 0);
	free(f);
}

struct submit_file *submit_file_find(struct submit *s, const char *name)
{
	struct submit_file *f;

	lock_scope(&s->lock);
	f = file_by_name(s, name);
	if (f)
		f->refs++;
	return f;
}

bool submit_file_name(struct submit_file *f, char ret[NAME_MAX + 1])
{
	lock_scope(&f->s->lock);
	if (f->name)
		memcpy(ret, f->name, strlen(f->name) + 1);
	return f->name;
}

/* One more who needs the descriptor, if it is open. */
static bool file_hold_open(struct submit_file *f)
{
	lock_scope(&f->s->lock);
	if (f->fd >= 0)
		f->holds++;
	return f->fd >= 0;
}

static void file_hold_first(struct submit_file *f, int fd)
{
	lock_scope(&f->s->lock);
	f->fd = fd;
	f->holds++;
	file_charge(f);
}

int submit_file_hold(struct submit_file *f)
{
	char name[NAME_MAX + 1];
	int fd cleanup_fd = -1;
	struct stat st;

	if (file_hold_open(f))
		return 0;
	if (!submit_file_name(f, name))
		return -ESTALE;
	fd = openat(f->s->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	/* The I/O thread may be giving this name to another file: the kernel asks again. */
	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != f->ino)
		return -ESTALE;
	file_hold_first(f, take_fd(&fd));
	return 0;
}

void submit_file_drop(struct submit_file *f)
{
	int fd = -1;

	{
		lock_scope(&f->s->lock);
		assert(f->holds > 0);
		if (--f->holds == 0)
			fd = take_fd(&f->fd);
		file_charge(f);
	}
	if (fd >= 0)
		close(fd);
}

/* --- attributes --- */

void submit_file_save_mode(struct submit_file *f)
{
	bool again = true;

	/* Either thread may be here; who finds that something has changed meanwhile goes on. */
	while (again) {
		unsigned modes;
		mode_t mode;

		{
			lock_scope(&f->s->lock);
			modes = f->modes;
			mode = f->mode | S_IRUSR | S_IWUSR;
			if (f->accepted == f->content)
				mode |= S_ISVTX;
		}
		if (fchmod(f->fd, mode) < 0)
			diag(DIAG_WARNING, "a file of submit/ can't be marked: %s",
			     strerror(errno));
		lock_scope(&f->s->lock);
		again = modes != f->modes;
	}
}

/* Before the bytes change: who makes something of the old ones (submit_replace.c) sees it in time. */
int submit_file_change(struct submit_file *f)
{
	bool was_accepted;

	{
		lock_scope(&f->s->lock);
		if (f->replacing)
			return -EBUSY;
		was_accepted = f->accepted == f->content;
		f->content++;
		f->modes += was_accepted;
	}
	if (was_accepted)
		submit_file_save_mode(f);
	return 0;
}

void submit_file_refresh(struct submit_file *f)
{
	struct stat st;

	/* Under the lock, so that of two threads the later one has the last word. */
	lock_scope(&f->s->lock);
	if (fstat(f->fd, &st) < 0)
		return; /* what was known stays; there is no way to repair a descriptor */
	f->st = st;
	f->size = (uint64_t)st.st_size;
	file_charge(f);
}

uint64_t submit_file_size(struct submit_file *f)
{
	lock_scope(&f->s->lock);
	return f->size;
}

int submit_file_room(struct submit_file *f, uint64_t size)
{
	lock_scope(&f->s->lock);
	if (size <= f->size)
		return 0;
	if (f->name && spec_name_submits(f->name))
		return size > SPEC_MAX_FILE ? -EFBIG : 0;
	if (size > SPEC_MAX_SCRATCH || f->s->scratch - f->charged + size > SPEC_MAX_SCRATCH_ALL)
		return -ENOSPC;
	return 0;
}

/* --- making, renaming, removing --- */

struct submit_file *submit_file_new(struct submit *s, const struct stat *st)
{
	struct submit_file *f = calloc(1, sizeof(*f));

	if (!f)
		return NULL;
	f->s = s;
	f->refs = 1; /* the table's */
	f->fd = -1;
	f->ino = st->st_ino;
	f->st = *st;
	f->size = (uint64_t)st->st_size;
	f->mode = st->st_mode & 0777;
	f->content = 1;
	f->accepted = st->st_mode & S_ISVTX ? 1 : 0;
	f->author.uid = st->st_uid == geteuid() ? s->fs->options->uid : st->st_uid;
	f->author.gid = st->st_gid == getegid() ? s->fs->options->gid : st->st_gid;
	return f;
}

int submit_file_insert(struct submit_file *f, const char *name)
{
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	lock_scope(&f->s->lock);
	file_attach(f, copy);
	return 0;
}

static bool file_table_full(struct submit *s)
{
	lock_scope(&s->lock);
	return HASH_COUNT(s->files) >= SUBMIT_MAX_NAMES;
}

int submit_file_make(struct submit *s, const char *name, mode_t mode, struct submit_author author,
		     struct submit_file **ret)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd cleanup_fd = -1;
	struct submit_file *f;
	struct stat st;

	if (file_table_full(s))
		return -ENOSPC;
	fd = openat(s->dir_fd, name, flags, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	/* Only root can give files away; for others memory knows who it was. */
	if ((author.uid != geteuid() || author.gid != getegid()) &&
	    fchown(fd, author.uid, author.gid) < 0)
		diag(DIAG_DEBUG, "%s: not given to user %u: %s", name, author.uid, strerror(errno));
	f = fchmod(fd, (mode & 0777) | S_IRUSR | S_IWUSR) < 0 || fstat(fd, &st) < 0
		    ? NULL
		    : submit_file_new(s, &st);
	if (!f || submit_file_insert(f, name) < 0) {
		free(f);
		unlinkat(s->dir_fd, name, 0);
		return -ENOMEM;
	}
	f->author = author;
	file_hold_first(f, take_fd(&fd));
	submit_file_ref(f);
	*ret = f;
	return 0;
}

/* The table's part of a rename: F is called NAME. *RET_LOST: who was, now the caller's reference. */
static void file_retable(struct submit_file *f, char *name, struct submit_file **ret_lost)
{
	lock_scope(&f->s->lock);
	*ret_lost = file_by_name(f->s, name);
	if (*ret_lost)
		submit_file_detach(*ret_lost);
	submit_file_detach(f);
	file_attach(f, name);
}

int submit_file_rename(struct submit_file *f, const char *name)
{
	struct submit_file *lost cleanup_submit_file = NULL;
	char *copy cleanup_free = strdup(name);
	char old[NAME_MAX + 1];

	if (!copy)
		return -ENOMEM;
	if (!submit_file_name(f, old))
		return -ENOENT;
	if (renameat(f->s->dir_fd, old, f->s->dir_fd, name) < 0)
		return -errno;
	file_retable(f, take_ptr(copy), &lost);
	return 0;
}

int submit_file_remove(struct submit_file *f)
{
	char name[NAME_MAX + 1];

	if (!submit_file_name(f, name))
		return -ENOENT;
	if (unlinkat(f->s->dir_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	{
		lock_scope(&f->s->lock);
		submit_file_detach(f);
	}
	submit_file_unref(f); /* the table's */
	return 0;
}
