/* SPDX-License-Identifier: MIT */
/*
 * Files of submit/ and dryrun/; see upload.h. This file is longer than others since all that both threads write of an
 * upload is under one lock, and the fields of a struct are written in one file.
 */
#include "fs/submit/upload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "fs/submit/name.h"
#include "fs/vfs/fuse.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/sha256.h"

struct uploads {
	struct lock lock;
	char *dir; /* constant, as DIR_FD and US */
	int dir_fd;
	struct record_owner us;
	struct upload *table; /* by name; has a reference of each */
	uint64_t scratch;     /* bytes of scratch files */
	int64_t changed;      /* ns */
};

/* Fields without a remark: under the lock of the table. */
struct upload {
	struct uploads *all; /* constant */
	ino_t ino;	     /* constant */
	char *name;	     /* NULL: it has none any more */
	unsigned refs;	     /* table, nodes, handles, launches */
	unsigned n_open;     /* who needs FD; it is open while there are some */
	int fd;		     /* opened by the FUSE thread only */
	uint64_t size;
	uint64_t charged;   /* part of all->scratch */
	uint64_t content;   /* counts changes of the bytes */
	uint64_t launching; /* the content whose launch is under way; 0: none */
	uint64_t launched;  /* the content that was launched last; 0: none */
	bool claimed; /* it was launched if its bytes have DIGEST, which nobody has compared yet */
	char digest
		[RECORD_DIGEST]; /* of the content LAUNCHED, or claimed; "": any bytes count as launched */
	bool replacing;		 /* the I/O thread changes the bytes */
	bool writing;		 /* the bytes have changed, and more may come */
	struct upload_writer *writers;
	struct stat st;		   /* as on disk */
	struct record_owner owner; /* as shown; FUSE thread */
	int flaw;		   /* FUSE thread */
	UT_hash_handle hh;
};

/* --- under the lock --- */

static struct upload *upload_by_name(struct uploads *all, const char *name)
{
	struct upload *u;

	HASH_FIND_STR(all->table, name, u);
	return u;
}

/* Count U's bytes in the bound of all scratch files, if it is one. */
static void upload_charge(struct upload *u)
{
	bool counts = u->name ? !spec_name_submits(u->name) : u->n_open > 0;
	uint64_t charge = counts ? u->size : 0;

	u->all->scratch += charge - u->charged;
	u->charged = charge;
}

static void upload_attach(struct upload *u, const char *name)
{
	u->name = text_copy(name);
	HASH_ADD_KEYPTR(hh, u->all->table, u->name, strlen(u->name), u);
	u->all->changed = loop_time_ns();
	upload_charge(u);
}

/* Take U out of the table; the caller has the table's reference now. */
static void upload_detach(struct upload *u)
{
	HASH_DEL(u->all->table, u);
	free(take_ptr(u->name));
	u->all->changed = loop_time_ns();
	upload_charge(u);
}

static bool upload_is_idle(const struct upload *u)
{
	return u->name && u->n_open == 0 && (u->claimed || u->launched == u->content);
}

static void upload_set_digest(struct upload *u, uint64_t content, const char *digest)
{
	u->launched = content;
	u->claimed = false;
	memcpy(u->digest, digest, RECORD_DIGEST);
}

/* --- references --- */

struct upload *upload_ref(struct upload *u)
{
	lock_scope(&u->all->lock);
	u->refs++;
	return u;
}

void upload_unref(struct upload *u)
{
	if (!u)
		return;
	{
		lock_scope(&u->all->lock);
		if (--u->refs > 0)
			return;
	}
	assert(!u->name && u->fd < 0 && u->charged == 0);
	free(u);
}

struct upload *upload_find(struct uploads *all, const char *name)
{
	struct upload *u;

	lock_scope(&all->lock);
	u = upload_by_name(all, name);
	if (u)
		u->refs++;
	return u;
}

bool upload_name(struct upload *u, char ret[NAME_MAX + 1])
{
	lock_scope(&u->all->lock);
	if (u->name)
		memcpy(ret, u->name, strlen(u->name) + 1);
	return u->name;
}

uint64_t upload_ino(const struct upload *u)
{
	return u->ino;
}

/* Count one more who needs the descriptor. True: it is open already. */
static bool upload_open_again(struct upload *u)
{
	lock_scope(&u->all->lock);
	if (u->fd >= 0)
		u->n_open++;
	return u->fd >= 0;
}

static void upload_opened(struct upload *u, int fd)
{
	lock_scope(&u->all->lock);
	u->fd = fd;
	u->n_open++;
	upload_charge(u);
}

int upload_open(struct upload *u)
{
	char name[NAME_MAX + 1];
	int fd cleanup_fd = -1;
	struct stat st;

	if (upload_open_again(u))
		return 0;
	if (!upload_name(u, name))
		return -ESTALE;
	fd = openat(u->all->dir_fd, name, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	/* The I/O thread may be giving this name to another file: with ESTALE the kernel asks again. */
	if (fd < 0)
		return errno == ENOENT ? -ESTALE : -errno;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (st.st_ino != u->ino)
		return -ESTALE;
	upload_opened(u, take_fd(&fd));
	return 0;
}

void upload_close(struct upload *u)
{
	int fd = -1;

	{
		lock_scope(&u->all->lock);
		assert(u->n_open > 0);
		if (--u->n_open == 0)
			fd = take_fd(&u->fd);
		upload_charge(u);
	}
	if (fd >= 0)
		close(fd);
}

/* --- making, renaming, removing --- */

static struct upload *upload_new(struct uploads *all, const struct stat *st)
{
	struct upload *u = new0(struct upload);

	u->all = all;
	u->refs = 1; /* the table's */
	u->fd = -1;
	u->ino = st->st_ino;
	u->st = *st;
	u->size = (uint64_t)st->st_size;
	u->content = 1;
	u->owner.uid = st->st_uid == geteuid() ? all->us.uid : st->st_uid;
	u->owner.gid = st->st_gid == getegid() ? all->us.gid : st->st_gid;
	return u;
}

static bool uploads_full(struct uploads *all)
{
	lock_scope(&all->lock);
	return HASH_COUNT(all->table) >= UPLOADS_MAX;
}

int upload_make(struct uploads *all, const char *name, mode_t mode, struct record_owner owner,
		struct upload **ret)
{
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd cleanup_fd = -1;
	struct upload *u;
	struct stat st;

	if (uploads_full(all))
		return -ENOSPC;
	fd = openat(all->dir_fd, name, flags, S_IRUSR | S_IWUSR);
	if (fd < 0)
		return -errno;
	/* Only root can give files away; for other users the owner is kept in memory. */
	if ((owner.uid != geteuid() || owner.gid != getegid()) &&
	    fchown(fd, owner.uid, owner.gid) < 0)
		diag(DIAG_DEBUG, "%s: not given to user %u: %s", name, owner.uid, strerror(errno));
	if (fchmod(fd, (mode & 0777) | S_IRUSR | S_IWUSR) < 0 || fstat(fd, &st) < 0) {
		int err = -errno;

		unlinkat(all->dir_fd, name, 0);
		return err;
	}
	u = upload_new(all, &st);
	u->owner = owner;
	u->refs++;
	{
		lock_scope(&all->lock);
		upload_attach(u, name);
	}
	upload_opened(u, take_fd(&fd));
	*ret = u;
	return 0;
}

/* Rename U in the table. Returns the file that was called NAME, whose reference is the caller's now. */
static struct upload *upload_move(struct upload *u, const char *name)
{
	struct upload *lost;

	lock_scope(&u->all->lock);
	lost = upload_by_name(u->all, name);
	if (lost)
		upload_detach(lost);
	upload_detach(u);
	upload_attach(u, name);
	return lost;
}

int upload_rename(struct upload *u, const char *name)
{
	char old[NAME_MAX + 1];

	if (!upload_name(u, old))
		return -ENOENT;
	if (streq(old, name))
		return 0;
	if (renameat(u->all->dir_fd, old, u->all->dir_fd, name) < 0)
		return -errno;
	upload_unref(upload_move(u, name));
	return 0;
}

int upload_remove(struct upload *u)
{
	char name[NAME_MAX + 1];

	if (!upload_name(u, name))
		return -ENOENT;
	if (unlinkat(u->all->dir_fd, name, 0) < 0 && errno != ENOENT)
		return -errno;
	{
		lock_scope(&u->all->lock);
		upload_detach(u);
	}
	upload_unref(u); /* the table's */
	return 0;
}

/* NAME has left the directory: take U, if that is still its name and nobody has opened it, out of the table. */
static bool upload_detach_idle(struct upload *u, const char *name)
{
	lock_scope(&u->all->lock);
	if (!upload_is_idle(u) || !streq(u->name, name))
		return false;
	upload_detach(u);
	return true;
}

int upload_expire(struct upload *u)
{
	const struct uploads *all = u->all;
	/* Beside the directory, until it is sure that nobody has opened it. */
	char *old cleanup_free = text_print("%s.old", all->dir);
	char name[NAME_MAX + 1];

	if (!upload_is_launched(u) || !upload_name(u, name))
		return -EBUSY;
	{
		lock_scope(&u->all->lock);
		if (!upload_is_idle(u))
			return -EBUSY;
	}
	if (renameat(all->dir_fd, name, AT_FDCWD, old) < 0)
		return -errno;
	if (upload_detach_idle(u, name)) {
		unlink(old);
		upload_unref(u); /* the table's */
		return 0;
	}
	if (renameat2(AT_FDCWD, old, all->dir_fd, name, RENAME_NOREPLACE) < 0)
		diag(DIAG_ERROR, "%s, once %s/%s, can't be put back: %s", old, all->dir, name,
		     strerror(errno));
	return -EBUSY;
}

/* --- bytes --- */

static void upload_refresh(struct upload *u)
{
	struct stat st;

	/* Under the lock, so that the newer attributes win when two threads do this. */
	lock_scope(&u->all->lock);
	if (fstat(u->fd, &st) < 0)
		return; /* the old attributes stay; a descriptor can't be repaired */
	u->st = st;
	u->size = (uint64_t)st.st_size;
	upload_charge(u);
}

/* To be called before the bytes change: checks that U may have SIZE, and begins a new content. */
static int upload_begin_change(struct upload *u, uint64_t size)
{
	lock_scope(&u->all->lock);
	if (u->replacing)
		return -EBUSY;
	if (size > u->size && u->name && spec_name_submits(u->name)) {
		if (size > SPEC_MAX_FILE)
			return -EFBIG;
	} else if (size > u->size) {
		if (size > SPEC_MAX_SCRATCH ||
		    u->all->scratch - u->charged + size > SPEC_MAX_SCRATCH_ALL)
			return -ENOSPC;
	}
	u->content++;
	u->claimed = false;
	return 0;
}

/* The bytes have changed, which may end the flaw of U. */
static void upload_end_change(struct upload *u)
{
	upload_refresh(u);
	if (upload_size(u) == 0 || u->flaw == ECANCELED)
		u->flaw = 0;
}

ssize_t upload_read(struct upload *u, char *buf, size_t size, off_t off)
{
	ssize_t n = pread(u->fd, buf, size, off);

	return n < 0 ? -errno : n;
}

int upload_write(struct upload *u, const char *buf, size_t size, off_t off)
{
	int err = upload_begin_change(u, (uint64_t)off + size);

	if (!err) {
		err = file_pwrite_all(u->fd, buf, size, off);
		upload_end_change(u);
	}
	if (err)
		u->flaw = -err;
	return err;
}

int upload_truncate(struct upload *u, off_t size)
{
	int err = upload_begin_change(u, (uint64_t)size);

	if (err)
		return err;
	if (ftruncate(u->fd, size) < 0)
		return -errno;
	upload_end_change(u);
	return 0;
}

uint64_t upload_size(struct upload *u)
{
	lock_scope(&u->all->lock);
	return u->size;
}

int upload_bytes(struct upload *u, char **ret, size_t *ret_len)
{
	return file_read_fd(u->fd, SPEC_MAX_SCRATCH, ret, ret_len);
}

int upload_sync(struct upload *u)
{
	return fdatasync(u->fd) < 0 ? -errno : 0;
}

int upload_flaw(struct upload *u)
{
	return u->flaw;
}

void upload_set_flaw(struct upload *u, int flaw)
{
	u->flaw = flaw;
}

/* --- attributes --- */

void upload_stat(struct upload *u, struct stat *st)
{
	lock_scope(&u->all->lock);
	st->st_mode = S_IFREG | (u->st.st_mode & 0777) | S_IRUSR | S_IWUSR;
	st->st_uid = u->owner.uid;
	st->st_gid = u->owner.gid;
	st->st_size = u->st.st_size;
	st->st_atim = u->st.st_atim;
	st->st_mtim = u->st.st_mtim;
	st->st_ctim = u->st.st_ctim;
}

static struct timespec upload_time(const struct timespec *t, int to_set, int set, int set_now)
{
	if (to_set & set_now)
		return (struct timespec){.tv_nsec = UTIME_NOW};
	if (to_set & set)
		return *t;
	return (struct timespec){.tv_nsec = UTIME_OMIT};
}

static int upload_set_times(const struct upload *u, const struct stat *attr, int to_set)
{
	const struct timespec times[2] = {
		upload_time(&attr->st_atim, to_set, FUSE_SET_ATTR_ATIME, FUSE_SET_ATTR_ATIME_NOW),
		upload_time(&attr->st_mtim, to_set, FUSE_SET_ATTR_MTIME, FUSE_SET_ATTR_MTIME_NOW),
	};

	return futimens(u->fd, times) < 0 ? -errno : 0;
}

static int upload_set_owner(struct upload *u, const struct stat *attr, int to_set)
{
	struct record_owner want = u->owner;

	if (to_set & FUSE_SET_ATTR_UID)
		want.uid = attr->st_uid;
	if (to_set & FUSE_SET_ATTR_GID)
		want.gid = attr->st_gid;
	if (want.uid == u->owner.uid && want.gid == u->owner.gid)
		return 0;
	if (fchown(u->fd, want.uid, want.gid) < 0)
		return -errno;
	u->owner = want;
	return 0;
}

int upload_set_attr(struct upload *u, const struct stat *attr, int to_set)
{
	const int times = FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_ATIME_NOW | FUSE_SET_ATTR_MTIME |
			  FUSE_SET_ATTR_MTIME_NOW;
	int err = 0;

	if (to_set & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
		err = upload_set_owner(u, attr, to_set);
	if (!err && (to_set & FUSE_SET_ATTR_MODE) &&
	    fchmod(u->fd, (attr->st_mode & 0777) | S_IRUSR | S_IWUSR) < 0)
		err = -errno;
	if (!err && (to_set & times))
		err = upload_set_times(u, attr, to_set);
	upload_refresh(u);
	return err;
}

/* --- writers --- */

void upload_set_dirty(struct upload_writer *w)
{
	w->dirty = true;
}

void upload_add_writer(struct upload *u, struct upload_writer *w, pid_t opener)
{
	w->opener = opener;
	lock_scope(&u->all->lock);
	DL_APPEND(u->writers, w);
}

void upload_remove_writer(struct upload *u, struct upload_writer *w)
{
	lock_scope(&u->all->lock);
	DL_DELETE(u->writers, w);
}

bool upload_begin_writing(struct upload *u)
{
	bool was;

	lock_scope(&u->all->lock);
	was = u->writing;
	u->writing = true;
	return !was;
}

bool upload_end_writing(struct upload *u)
{
	bool over;

	lock_scope(&u->all->lock);
	over = u->writing && !u->writers;
	if (over)
		u->writing = false;
	return over;
}

bool upload_has_digest(struct upload *u)
{
	lock_scope(&u->all->lock);
	return *u->digest;
}

static bool upload_same_process(const struct upload_writer *a, const struct upload_writer *b)
{
	return a == b || (a->opener != 0 && a->opener == b->opener);
}

struct upload_writer *upload_sibling(struct upload *u, struct upload_writer *w)
{
	struct upload_writer *other;

	lock_scope(&u->all->lock);
	DL_FOREACH(u->writers, other)
		if (other != w && upload_same_process(other, w))
			return other;
	return NULL;
}

bool upload_is_dirty(struct upload *u, struct upload_writer *w)
{
	const struct upload_writer *other;

	lock_scope(&u->all->lock);
	DL_FOREACH(u->writers, other)
		if (other->dirty && upload_same_process(other, w))
			return true;
	return false;
}

bool upload_is_spent(struct upload *u, struct upload_writer *w)
{
	lock_scope(&u->all->lock);
	return w->spent || w->launch != 0;
}

bool upload_is_busy(struct upload *u)
{
	const struct upload_writer *w;

	lock_scope(&u->all->lock);
	if (u->launching == u->content)
		return true;
	DL_FOREACH(u->writers, w)
		if (w->dirty)
			return true;
	return false;
}

/* --- what became of the content --- */

uint64_t upload_launching(struct upload *u, struct upload_writer *w, uint64_t launch)
{
	struct upload_writer *other;

	lock_scope(&u->all->lock);
	DL_FOREACH(u->writers, other) {
		if (!w || !other->dirty || !upload_same_process(other, w))
			continue;
		other->launch = launch;
		other->dirty = false;
	}
	u->writing = false;
	DL_FOREACH(u->writers, other)
		u->writing |= other->dirty;
	if (launch)
		u->launching = u->content;
	return u->content;
}

void upload_concluded(struct upload *u, uint64_t launch, uint64_t content, const char *digest)
{
	struct upload_writer *w;

	lock_scope(&u->all->lock);
	DL_FOREACH(u->writers, w) {
		if (w->launch != launch)
			continue;
		w->spent = digest;
		w->launch = 0;
	}
	if (u->launching == content)
		u->launching = 0;
	if (digest && content >= u->launched)
		upload_set_digest(u, content, digest);
}

/* Compute the digest of the file NAME. 0 or a negative errno. */
static int upload_digest(const struct uploads *all, const char *name, char ret[RECORD_DIGEST])
{
	char *path cleanup_free = text_print("%s/%s", all->dir, name);
	char *text cleanup_free = NULL;
	size_t len = 0;
	int err = file_read(path, SPEC_MAX_SCRATCH, &text, &len);

	if (!err)
		spec_sha256(text, len, ret);
	return err;
}

void upload_recover(struct upload *u, const char *text, size_t len)
{
	char digest[RECORD_DIGEST] = "";

	if (text)
		spec_sha256(text, len, digest);
	lock_scope(&u->all->lock);
	u->claimed = true;
	memcpy(u->digest, digest, sizeof(digest));
}

bool upload_is_launched(struct upload *u)
{
	char name[NAME_MAX + 1], digest[RECORD_DIGEST] = "";
	uint64_t content;

	{
		lock_scope(&u->all->lock);
		if (u->replacing || u->launched == u->content)
			return true;
		if (!u->claimed || !u->name)
			return false;
		memcpy(name, u->name, strlen(u->name) + 1);
		content = u->content;
	}
	/* A file that can't be read is not launched again: a job that runs twice would be worse. */
	if (upload_digest(u->all, name, digest) < 0)
		return true;
	lock_scope(&u->all->lock);
	if (u->claimed && u->content == content) {
		u->claimed = false;
		if (!*u->digest || streq(u->digest, digest))
			upload_set_digest(u, content, digest);
	}
	return u->launched == u->content;
}

bool upload_is_current(struct upload *u, uint64_t content)
{
	lock_scope(&u->all->lock);
	return u->content == content;
}

static bool upload_begin_replace(struct upload *u, uint64_t content)
{
	lock_scope(&u->all->lock);
	if (u->content != content)
		return false;
	u->replacing = true;
	return true;
}

/* A full disk must not cost the document: the room is there before the first byte changes. */
static int upload_replace_bytes(int fd, const char *text, size_t len)
{
	int err;

	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)len) < 0 && errno != EOPNOTSUPP)
		return -errno;
	err = file_pwrite_all(fd, text, len, 0);
	if (err < 0)
		return err;
	return ftruncate(fd, (off_t)len) < 0 ? -errno : 0;
}

int upload_replace(struct upload *u, uint64_t content, const char *text)
{
	char digest[RECORD_DIGEST];
	int err;

	if (!upload_begin_replace(u, content))
		return 0;
	spec_sha256(text, strlen(text), digest);
	err = upload_replace_bytes(u->fd, text, strlen(text));
	{
		lock_scope(&u->all->lock);
		u->replacing = false;
		u->content++;
		if (!err)
			upload_set_digest(u, u->content, digest);
	}
	upload_refresh(u);
	return err;
}

/* --- all --- */

static int uploads_scan_one(struct uploads *all, const char *name)
{
	struct upload *u;
	struct stat st;

	if (fstatat(all->dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || submit_name_check(name) < 0) {
		diag(DIAG_WARNING, "%s/%s: not a file of kxfs, ignored", all->dir, name);
		return 0;
	}
	u = upload_new(all, &st);
	lock_scope(&all->lock);
	upload_attach(u, name);
	return 0;
}

static int uploads_scan(struct uploads *all)
{
	struct dirent **names = NULL;
	int err = 0;
	int n = scandirat(all->dir_fd, ".", &names, NULL, NULL);

	if (n < 0)
		return -errno;
	for (int i = 0; i < n; i++) {
		const char *name = names[i]->d_name;

		if (!err && !streq(name, ".") && !streq(name, ".."))
			err = uploads_scan_one(all, name);
		free(names[i]);
	}
	free(names);
	return err;
}

int uploads_new(const char *dir, int dir_fd, struct record_owner us, struct uploads **ret)
{
	struct uploads *all = new0(struct uploads);
	int err;

	all->lock = (struct lock)LOCK_INIT;
	all->dir = text_copy(dir);
	all->dir_fd = dir_fd;
	all->us = us;
	err = uploads_scan(all);
	all->changed = loop_time_ns();
	if (err)
		uploads_free(all);
	else
		*ret = all;
	return err;
}

void uploads_free(struct uploads *all)
{
	struct upload *u, *next;

	if (!all)
		return;
	HASH_ITER(hh, all->table, u, next) {
		{
			lock_scope(&all->lock);
			upload_detach(u);
		}
		upload_unref(u);
	}
	free(all->dir);
	free(all);
}

int64_t uploads_changed(struct uploads *all)
{
	lock_scope(&all->lock);
	return all->changed;
}

void uploads_visit(struct uploads *all, void (*fn)(void *data, const char *name), void *data)
{
	struct upload *u, *next;

	lock_scope(&all->lock);
	HASH_ITER(hh, all->table, u, next)
		fn(data, u->name);
}

size_t uploads_list_old(struct uploads *all, int64_t before, char ***ret)
{
	struct upload *u, *next;
	size_t n = 0;

	lock_scope(&all->lock);
	*ret = new0_n(char *, HASH_COUNT(all->table));
	HASH_ITER(hh, all->table, u, next)
		if (u->st.st_ctim.tv_sec < before / 1000000000 && upload_is_idle(u))
			(*ret)[n++] = text_copy(u->name);
	return n;
}

void uploads_fill_record(struct uploads *all, const char *name, struct record *r)
{
	const struct upload *u;

	lock_scope(&all->lock);
	u = upload_by_name(all, name);
	r->writing = u && u->writing && spec_name_submits(name);
	if (!u || !*u->digest || (!u->claimed && u->launched != u->content))
		return;
	r->launched_ino = u->ino;
	memcpy(r->launched, u->digest, RECORD_DIGEST);
}

/* The file with this number, which is most probably called NAME. Under the lock. */
static struct upload *uploads_by_ino(struct uploads *all, const char *name, uint64_t ino)
{
	struct upload *u = upload_by_name(all, name);

	if (u && u->ino == ino)
		return u;
	for (u = all->table; u && u->ino != ino; u = u->hh.next)
		;
	return u;
}

void uploads_take_record(struct uploads *all, const char *name, const struct record *r)
{
	struct upload *u;

	if (!r->launched_ino)
		return;
	lock_scope(&all->lock);
	u = uploads_by_ino(all, name, r->launched_ino);
	if (!u)
		return;
	u->claimed = true;
	memcpy(u->digest, r->launched, RECORD_DIGEST);
}
