/* SPDX-License-Identifier: MIT */
/*
 * Files with their bytes; see upload.h. This source file is long because one lock protects the
 * names, the contents and the states of all uploads, and only this file changes them.
 */
#include "fs/submit/upload.h"

#include <errno.h>
#include <fcntl.h>
#include <utlist.h>

#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/loop.h"
#include "fs/vfs/fuse.h"
#include "spec/base/encode.h"
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/time.h"

struct uploads {
	struct lock *lock; /* constant, like DIR_FD and US */
	int dir_fd;
	struct file_owner us;
	uint64_t scratch;  /* bytes of scratch files */
	uint64_t memory;   /* bytes of contents in memory */
	uint64_t versions; /* the newest version */
	uint64_t ids;	   /* the newest id */
};

/* The contents that a file shows, or that one handle has. Under the lock. */
struct content {
	/*
	 * one if the file shows the contents, and one for each handle that has them; contents with
	 * several references must not change
	 */
	unsigned refs;
	char *bytes;
	size_t room; /* allocated size of BYTES; counted in all->memory */
	uint64_t size;
	uint64_t version; /* unique in the directory */
	enum content_state state;
	int flaw;
};

struct attr {
	mode_t mode;
	struct file_owner owner;
	int64_t atime, mtime, ctime; /* in ns */
};

enum upload_name { UPLOAD_UNNAMED, UPLOAD_SCRATCH, UPLOAD_SUBMITS };

/*
 * Whether all changes of a file are on disk:
 *
 *	state     | meaning                                   | next
 *	SAVED     | the disk has everything, or the file has  | a change: CHANGED
 *	          | no name                                   |
 *	CHANGED   | the disk lacks a change                   | a save is queued: REQUESTED
 *	REQUESTED | the disk lacks a change, a save is queued | the save begins: SAVING
 *	SAVING    | the save is running                       | done: SAVED
 *	          |                                           | a change, or an error: CHANGED
 */
enum upload_disk { UPLOAD_SAVED, UPLOAD_CHANGED, UPLOAD_REQUESTED, UPLOAD_SAVING };

/* Members are under the lock, except where noted. */
struct upload {
	struct uploads *all; /* constant, like ID */
	uint64_t id;
	unsigned refs; /* of names, nodes, handles, launches, saves */
	/* upload_open calls minus upload_close calls; the bytes may be freed only at 0 */
	unsigned n_open;
	unsigned taken; /* see struct upload_look */
	enum upload_name named;
	struct content *shown;
	bool loaded; /* false if SHOWN's size is in memory, but not its bytes */
	/* the contents that changed last, if a handle has them; NULL if SHOWN changed last */
	const struct content *latest;
	uint64_t charged; /* how many bytes of this file all->scratch counts */
	struct attr attr;
	struct upload_writer *writers;
	enum upload_disk disk;
	/* Not under the lock: once the mount is up, only the queue uses these. */
	ino_t ino; /* 0 if the file is not on disk */
	char name[NAME_MAX + 1];
};

/* --- under the lock --- */

/* Update all->scratch, which counts scratch files, and removed files that are still open. */
static void charge(struct upload *u)
{
	bool counts = u->named ? u->named == UPLOAD_SCRATCH : u->n_open > 0;
	uint64_t bytes = counts ? u->shown->size : 0;

	u->all->scratch += bytes - u->charged;
	u->charged = bytes;
}

static struct content *content_new(struct uploads *all)
{
	struct content *c = new0(struct content);

	c->refs = 1;
	c->version = ++all->versions;
	return c;
}

static void content_set_room(struct uploads *all, struct content *c, size_t room)
{
	all->memory += room - c->room;
	c->room = room;
	if (room)
		c->bytes = mem_grow(c->bytes, room, 1);
	else
		free(take_ptr(c->bytes));
}

/* New bytes are zero. */
static void content_resize(struct uploads *all, struct content *c, uint64_t size)
{
	if (size > c->room)
		content_set_room(all, c,
				 max_of(size, min_of(2 * c->room, (size_t)SPEC_MAX_SCRATCH)));
	if (size > c->size)
		memset(c->bytes + c->size, 0, size - c->size);
	c->size = size;
}

static void content_set(struct uploads *all, struct content *c, const char *bytes, size_t len)
{
	content_resize(all, c, len);
	if (len)
		memcpy(c->bytes, bytes, len);
}

static void content_unref(struct uploads *all, struct content *c)
{
	if (!c || --c->refs > 0)
		return;
	content_set_room(all, c, 0);
	free(c);
}

/* If U is closed and saved, free its bytes in memory. */
static void unload(struct upload *u)
{
	if (u->n_open > 0 || u->disk != UPLOAD_SAVED)
		return;
	u->loaded = false;
	content_set_room(u->all, u->shown, 0);
}

static void set_changed(struct upload *u)
{
	if (u->disk != UPLOAD_REQUESTED)
		u->disk = UPLOAD_CHANGED;
}

static void touch(struct upload *u, bool bytes)
{
	u->attr.ctime = loop_time_ns();
	if (bytes)
		u->attr.mtime = u->attr.ctime;
}

/* Return the contents that W reads; W may be NULL. */
static struct content *content_of(const struct upload *u, const struct upload_writer *w)
{
	return w && w->content ? w->content : u->shown;
}

/*
 * Return the address of the pointer to the contents that W changes. If W has contents of its own,
 * or if U has a submitting name, this is the pointer in W, which may still be NULL. Otherwise, or
 * if W is NULL (a change without a handle), it is the pointer in U.
 */
static struct content **slot_to_change(struct upload *u, struct upload_writer *w)
{
	return w && (w->content || u->named == UPLOAD_SUBMITS) ? &w->content : &u->shown;
}

/* True if a change must make new contents, because *AT is NULL or shared. */
static bool is_copied(struct content *const *at)
{
	return !*at || (*at)->refs > 1;
}

/*
 * Return the contents that W may change; W is NULL for a change without a handle. First replace
 * shared contents by a copy, or by empty contents if FRESH is true.
 */
static struct content *content_to_change(struct upload *u, struct upload_writer *w, bool fresh)
{
	struct content **at = slot_to_change(u, w), *old = *at ? *at : u->shown, *c;

	if (!is_copied(at))
		return old;
	c = content_new(u->all);
	if (!fresh)
		content_set(u->all, c, old->bytes, old->size);
	c->flaw = old->flaw;
	if (*at)
		content_unref(u->all, old);
	*at = c;
	return c;
}

/* The bytes of C have changed: give C a new version, and clear a flaw that no longer applies. */
static void changed(struct upload *u, struct content *c)
{
	c->version = ++u->all->versions;
	c->state = CONTENT_NEW;
	if (c->size == 0 || c->flaw == ECANCELED || c->flaw == EINVAL)
		c->flaw = 0;
	touch(u, true);
	u->latest = c == u->shown ? NULL : c;
	if (u->latest)
		return;
	set_changed(u);
	charge(u);
}

/* Return 0, or -EFBIG or -ENOSPC if the contents that W changes can't have SIZE bytes. */
static int check_bounds(struct upload *u, struct upload_writer *w, uint64_t size)
{
	const struct uploads *all = u->all;
	const struct content *c = content_of(u, w);
	bool copied = is_copied(slot_to_change(u, w));

	/* To empty a file needs no memory. */
	if (size == 0 || (size <= c->size && !copied))
		return 0;
	if (size > c->size && u->named == UPLOAD_SUBMITS) {
		if (size > SPEC_MAX_FILE)
			return -EFBIG;
	} else if (size > c->size && (size > SPEC_MAX_SCRATCH ||
				      all->scratch - u->charged + size > SPEC_MAX_SCRATCH_ALL)) {
		return -ENOSPC;
	}
	return all->memory - (copied ? 0 : c->room) + size > UPLOADS_MAX_MEMORY ? -ENOSPC : 0;
}

void upload_hold(struct upload *u)
{
	u->refs++;
}

uint64_t upload_version(const struct upload *u)
{
	return u->shown->version;
}

bool upload_is_idle(const struct upload *u)
{
	return u->n_open == 0 && u->disk == UPLOAD_SAVED;
}

void upload_set_name(struct upload *u, const char *name)
{
	struct upload_writer *w;

	u->named = !name		     ? UPLOAD_UNNAMED
		   : spec_name_submits(name) ? UPLOAD_SUBMITS
					     : UPLOAD_SCRATCH;
	charge(u);
	/* If the new name submits, each writer with unsubmitted changes gets its own contents. */
	DL_FOREACH(u->writers, w)
		if (u->named == UPLOAD_SUBMITS && w->dirty && !w->content) {
			w->content = u->shown;
			w->content->refs++;
		}
}

static bool is_of(const struct upload_writer *w, pid_t process)
{
	return process != 0 && w->opener == process;
}

pid_t upload_displace(struct upload *u, pid_t process)
{
	struct upload_writer *w;
	pid_t ret = 0;

	u->taken++;
	DL_FOREACH(u->writers, w) {
		if (is_of(w, process))
			continue;
		if (w->dirty && !w->lost)
			ret = w->opener ? w->opener : -1;
		w->lost = true;
	}
	return ret;
}

/* --- making, opening and freeing --- */

struct uploads *uploads_new(int dir_fd, struct file_owner us, struct lock *lock)
{
	struct uploads *all = new0(struct uploads);

	all->lock = lock;
	all->dir_fd = dir_fd;
	all->us = us;
	return all;
}

void uploads_free(struct uploads *all)
{
	free(all);
}

struct upload *upload_new(struct uploads *all, const char *name, mode_t mode,
			  struct file_owner owner)
{
	struct upload *u = new0(struct upload);

	u->all = all;
	u->id = ++all->ids;
	snprintf(u->name, sizeof(u->name), "%s", name);
	u->refs = 1;
	u->shown = content_new(all);
	u->loaded = true;
	u->disk = UPLOAD_CHANGED;
	u->attr.mode = (mode & 0777) | S_IRUSR | S_IWUSR;
	u->attr.owner = owner;
	touch(u, true);
	u->attr.atime = u->attr.mtime;
	return u;
}

struct upload *upload_found(struct uploads *all, const char *name, const struct stat *st,
			    enum content_state state)
{
	struct file_owner owner = {
		.uid = st->st_uid == geteuid() ? all->us.uid : st->st_uid,
		.gid = st->st_gid == getegid() ? all->us.gid : st->st_gid,
	};
	struct upload *u = upload_new(all, name, st->st_mode, owner);

	u->loaded = false;
	u->disk = UPLOAD_SAVED;
	u->shown->size = (uint64_t)st->st_size;
	u->shown->state = state;
	u->attr.atime = spec_time_of(st->st_atim);
	u->attr.mtime = spec_time_of(st->st_mtim);
	u->attr.ctime = spec_time_of(st->st_ctim);
	u->ino = st->st_ino;
	return u;
}

struct upload *upload_ref(struct upload *u)
{
	lock_scope(u->all->lock);
	upload_hold(u);
	return u;
}

void upload_unref(struct upload *u)
{
	if (!u)
		return;
	{
		lock_scope(u->all->lock);
		if (--u->refs > 0)
			return;
		content_unref(u->all, u->shown);
	}
	assert(!u->named && u->charged == 0);
	free(u);
}

uint64_t upload_id(const struct upload *u)
{
	return u->id;
}

int upload_open(struct upload *u, bool empty)
{
	lock_scope(u->all->lock);
	if (!u->loaded && !u->named)
		return -ESTALE;
	if (!u->loaded && !empty) {
		if (u->all->memory - u->shown->room + u->shown->size > UPLOADS_MAX_MEMORY)
			return -ENFILE;
		/* upload_load fills this room */
		content_resize(u->all, u->shown, u->shown->size);
	}
	u->n_open++;
	charge(u);
	return u->loaded || empty ? 0 : -EAGAIN;
}

void upload_close(struct upload *u)
{
	lock_scope(u->all->lock);
	assert(u->n_open > 0);
	u->n_open--;
	charge(u);
	unload(u);
}

struct upload_look upload_look(struct upload *u, const struct upload_writer *w)
{
	const struct upload_writer *o;
	const struct content *c;
	struct upload_look ret;
	char last;

	lock_scope(u->all->lock);
	c = content_of(u, w);
	ret = (struct upload_look){
		.taken = u->taken,
		.version = u->shown->version,
		.state = u->shown->state,
		.has_writers = u->writers,
		.is_busy = u->shown->state == CONTENT_LAUNCHING,
		.is_saved = u->disk == UPLOAD_SAVED,
		.size = c->size,
		.flaw = c->flaw,
	};
	DL_FOREACH(u->writers, o)
		ret.is_busy |= o->dirty && !o->lost;
	if (!w)
		return ret;
	last = c->size > 0 && c->bytes ? c->bytes[c->size - 1] : '\0';
	ret.is_whole = last && strchr("\n}]", last);
	ret.is_dirty = w->dirty && !w->lost;
	ret.is_lost = w->dirty && w->lost;
	ret.may_write = !w->lost && (w->unseen || !(w->spent || w->launch));
	return ret;
}

/* --- bytes --- */

size_t upload_read(struct upload *u, const struct upload_writer *w, char *buf, size_t size,
		   off_t off)
{
	const struct content *c;
	size_t n;

	lock_scope(u->all->lock);
	c = content_of(u, w);
	n = (uint64_t)off < c->size ? min_of(size, (size_t)(c->size - (uint64_t)off)) : 0;
	if (n)
		memcpy(buf, c->bytes + off, n);
	return n;
}

/*
 * Record as a flaw that a write of W failed. If U has a submitting name, and W has no contents of
 * its own yet, W first gets empty ones, because there may be no space for a copy. The file still
 * shows its old contents.
 */
static void fail(struct upload *u, struct upload_writer *w, int err)
{
	struct content *c =
		u->named == UPLOAD_SUBMITS ? content_to_change(u, w, true) : content_of(u, w);

	w->dirty = true;
	/* If a process was killed, its write fails with EINTR. The flaw already shows that. */
	if (!c->flaw || err != -EINTR)
		c->flaw = -err;
}

void upload_fail(struct upload *u, struct upload_writer *w, int err)
{
	lock_scope(u->all->lock);
	fail(u, w, err);
}

int upload_write(struct upload *u, struct upload_writer *w, const char *buf, size_t size, off_t off)
{
	uint64_t end = (uint64_t)off + size;
	struct content *c;
	int err;

	lock_scope(u->all->lock);
	err = check_bounds(u, w, end);
	if (err) {
		fail(u, w, err);
		return err;
	}
	w->dirty = true;
	c = content_to_change(u, w, false);
	if (end > c->size)
		content_resize(u->all, c, end);
	if (size)
		memcpy(c->bytes + off, buf, size);
	changed(u, c);
	return 0;
}

int upload_truncate(struct upload *u, struct upload_writer *w, off_t size)
{
	struct content *c;
	int err;

	lock_scope(u->all->lock);
	err = check_bounds(u, w, (uint64_t)size);
	if (err)
		return err;
	c = content_to_change(u, w, size == 0);
	if (w)
		w->dirty = true;
	if (c == u->shown && size == 0)
		u->loaded = true;
	content_resize(u->all, c, (uint64_t)size);
	changed(u, c);
	return 0;
}

bool upload_show(struct upload *u, struct upload_writer *w)
{
	lock_scope(u->all->lock);
	if (!w->dirty || w->lost || !w->content || w->content == u->shown ||
	    (w->content->flaw && !w->content->size))
		return false;
	content_unref(u->all, u->shown);
	u->shown = w->content;
	u->shown->refs++;
	u->loaded = true;
	set_changed(u);
	u->latest = NULL;
	charge(u);
	return true;
}

void upload_copy(struct upload *u, const struct upload_writer *w, char **ret, size_t *ret_len,
		 uint64_t *ret_version)
{
	const struct content *c;

	lock_scope(u->all->lock);
	c = content_of(u, w);
	*ret = mem_copy(c->size ? c->bytes : "", c->size);
	*ret_len = c->size;
	*ret_version = c->version;
}

uint64_t upload_replace(struct upload *u, uint64_t version, const char *text)
{
	struct content *c;

	lock_scope(u->all->lock);
	touch(u, true);
	set_changed(u);
	/* The disk has TEXT now. If the file shows newer contents, the next save writes those. */
	if (u->shown->version != version)
		return 0;
	c = content_to_change(u, NULL, true);
	content_set(u->all, c, text, strlen(text));
	c->version = ++u->all->versions;
	return c->version;
}

void upload_set_state(struct upload *u, uint64_t version, enum content_state state)
{
	lock_scope(u->all->lock);
	if (u->shown->version == version)
		u->shown->state = state;
}

void upload_set_flaw(struct upload *u, struct upload_writer *w, int flaw)
{
	lock_scope(u->all->lock);
	content_of(u, w)->flaw = flaw;
}

/* --- attributes --- */

void upload_stat(struct upload *u, const struct upload_writer *w, struct stat *st)
{
	const struct content *c;

	lock_scope(u->all->lock);
	c = w || !u->latest ? content_of(u, w) : u->latest;
	st->st_mode = S_IFREG | u->attr.mode;
	st->st_uid = u->attr.owner.uid;
	st->st_gid = u->attr.owner.gid;
	st->st_size = (off_t)c->size;
	st->st_atim = spec_time_spec(u->attr.atime);
	st->st_mtim = spec_time_spec(u->attr.mtime);
	st->st_ctim = spec_time_spec(u->attr.ctime);
}

/* True if the user of this process is in the group GID, and so may give files to this group. */
static bool is_our_group(gid_t gid)
{
	gid_t groups[256];
	int n = getgroups(array_size(groups), groups);

	while (n > 0)
		if (groups[--n] == gid)
			return true;
	return gid == getegid();
}

int upload_set_attr(struct upload *u, const struct stat *attr, int to_set)
{
	struct file_owner want;

	lock_scope(u->all->lock);
	want = u->attr.owner;
	if (to_set & FUSE_SET_ATTR_UID)
		want.uid = attr->st_uid;
	if (to_set & FUSE_SET_ATTR_GID)
		want.gid = attr->st_gid;
	if (geteuid() != 0 && (want.uid != u->attr.owner.uid ||
			       (want.gid != u->attr.owner.gid && !is_our_group(want.gid))))
		return -EPERM;
	u->attr.owner = want;
	if (to_set & FUSE_SET_ATTR_MODE)
		u->attr.mode = (attr->st_mode & 0777) | S_IRUSR | S_IWUSR;
	touch(u, false);
	set_changed(u);
	if (to_set & FUSE_SET_ATTR_ATIME)
		u->attr.atime = spec_time_of(attr->st_atim);
	if (to_set & FUSE_SET_ATTR_MTIME)
		u->attr.mtime = spec_time_of(attr->st_mtim);
	if (to_set & FUSE_SET_ATTR_ATIME_NOW)
		u->attr.atime = u->attr.ctime;
	if (to_set & FUSE_SET_ATTR_MTIME_NOW)
		u->attr.mtime = u->attr.ctime;
	return 0;
}

void upload_set_owner(struct upload *u, struct file_owner owner)
{
	lock_scope(u->all->lock);
	u->attr.owner = owner;
}

/* --- writers --- */

void upload_add_writer(struct upload *u, struct upload_writer *w, pid_t opener, unsigned taken,
		       bool made)
{
	w->opener = opener;
	lock_scope(u->all->lock);
	w->lost = !u->named || taken != u->taken;
	if (made && u->named == UPLOAD_SUBMITS)
		w->content = content_new(u->all);
	DL_APPEND(u->writers, w);
}

void upload_remove_writer(struct upload *u, struct upload_writer *w)
{
	lock_scope(u->all->lock);
	DL_DELETE(u->writers, w);
	if (u->latest == w->content)
		u->latest = NULL;
	content_unref(u->all, take_ptr(w->content));
}

size_t upload_others(struct upload *u, const struct upload_writer *w, pid_t process)
{
	const struct upload_writer *o;
	size_t n = 0;

	lock_scope(u->all->lock);
	DL_FOREACH(u->writers, o)
		n += o != w && is_of(o, process);
	return n;
}

void upload_set_unseen(struct upload *u, struct upload_writer *w, bool strange)
{
	lock_scope(u->all->lock);
	w->unseen = true;
	if (strange)
		w->opener = 0;
}

void upload_submitted(struct upload *u, struct upload_writer *w, uint64_t launch)
{
	lock_scope(u->all->lock);
	w->launch = launch;
	w->dirty = false;
}

void upload_concluded(struct upload *u, uint64_t launch, bool accepted)
{
	struct upload_writer *w;

	lock_scope(u->all->lock);
	DL_FOREACH(u->writers, w) {
		if (w->launch != launch)
			continue;
		w->spent = accepted;
		w->launch = 0;
	}
}

/* --- the disk --- */

bool upload_want_save(struct upload *u)
{
	bool want;

	lock_scope(u->all->lock);
	want = u->disk == UPLOAD_CHANGED;
	if (want)
		u->disk = UPLOAD_REQUESTED;
	return want;
}

/* what one save writes */
struct upload_snapshot {
	char *bytes; /* malloc'ed; NULL if only attributes have changed */
	uint64_t size;
	struct attr attr;
};

static bool take_snapshot(struct upload *u, struct upload_snapshot *ret)
{
	lock_scope(u->all->lock);
	/* On disk, the old name of a removed file may belong to another file by now. */
	if (!u->named)
		u->disk = UPLOAD_SAVED;
	if (u->disk == UPLOAD_SAVED)
		return false;
	*ret = (struct upload_snapshot){NULL, u->shown->size, u->attr};
	if (u->loaded)
		ret->bytes = mem_copy(u->shown->size ? u->shown->bytes : "", u->shown->size);
	u->disk = UPLOAD_SAVING;
	return true;
}

/* Return a descriptor or a negative errno. Create the file if it is missing. */
static int open_file(struct upload *u)
{
	int flags = u->ino ? O_RDWR : O_RDWR | O_CREAT | O_EXCL;
	int fd = disk_open(u->all->dir_fd, u->name, flags);
	struct stat st;
	int err;

	if (fd < 0 || u->ino)
		return fd;
	err = disk_stat(fd, "", &st);
	if (err) {
		close(fd);
		return err;
	}
	u->ino = st.st_ino;
	return fd;
}

static int save_snapshot(struct upload *u, const struct upload_snapshot *p)
{
	int fd cleanup_fd = open_file(u);
	struct stat st;
	int err = min_of(fd, 0);

	if (!err && p->bytes)
		err = file_pwrite_all(fd, p->bytes, p->size, 0);
	if (!err)
		err = disk_stat(fd, "", &st);
	if (!err && (uint64_t)st.st_size != p->size)
		err = disk_truncate(fd, p->size);
	if (!err && (st.st_mode & 07777) != p->attr.mode)
		err = disk_chmod(fd, "", p->attr.mode);
	/* Only root can change owners on disk. Otherwise kxfs keeps owners only in memory. */
	if (!err && geteuid() == 0 &&
	    (st.st_uid != p->attr.owner.uid || st.st_gid != p->attr.owner.gid))
		err = disk_chown(fd, p->attr.owner.uid, p->attr.owner.gid);
	return err ? err : disk_touch(fd, "", p->attr.mtime);
}

int upload_save(struct upload *u)
{
	struct upload_snapshot p;
	int err;

	if (!take_snapshot(u, &p))
		return 0;
	err = save_snapshot(u, &p);
	free(p.bytes);
	lock_scope(u->all->lock);
	if (err)
		set_changed(u);
	else if (u->disk == UPLOAD_SAVING)
		u->disk = UPLOAD_SAVED;
	unload(u);
	return err;
}

int upload_load(struct upload *u, uint64_t *ret_version, char digest[UPLOAD_DIGEST])
{
	int fd cleanup_fd = -1;
	char *text cleanup_free = NULL;
	size_t len = 0;
	int err;

	{
		lock_scope(u->all->lock);
		if (ret_version)
			*ret_version = u->shown->version;
		if (u->loaded)
			text = mem_copy(u->shown->size ? u->shown->bytes : "",
					len = u->shown->size);
		else if (!u->named)
			return -ESTALE;
	}
	if (!text) {
		fd = disk_open(u->all->dir_fd, u->name, O_RDONLY);
		err = fd < 0 ? fd : file_read_fd(fd, SPEC_MAX_SCRATCH, &text, &len);
		if (err)
			return err;
	}
	if (ret_version)
		spec_sha256(text, len, digest);
	lock_scope(u->all->lock);
	if (u->loaded || u->n_open == 0)
		return 0;
	content_set(u->all, u->shown, text, len);
	charge(u);
	u->loaded = true;
	return 0;
}

/* True if U has a name. Then U has one on disk, too: the queue keeps the order of changes. */
static bool is_named(struct upload *u)
{
	lock_scope(u->all->lock);
	return u->named;
}

int upload_sync(struct upload *u)
{
	int fd cleanup_fd = -1;

	if (!is_named(u))
		return 0;
	fd = disk_open(u->all->dir_fd, u->name, O_RDONLY);
	return fd < 0 ? fd : disk_sync_data(fd);
}

int upload_save_text(struct upload *u, const char *text)
{
	size_t len = strlen(text);
	int fd cleanup_fd = -1;
	int err;

	if (!is_named(u))
		return 0;
	fd = disk_open(u->all->dir_fd, u->name, O_RDWR);
	err = fd < 0 ? fd : disk_reserve(fd, len, false);
	if (err == -EOPNOTSUPP)
		err = 0;
	if (!err)
		err = file_pwrite_all(fd, text, len, 0);
	return err ? err : disk_truncate(fd, len);
}

int upload_save_name(struct upload *u, const char *name)
{
	struct stat st;
	int err = u->ino ? disk_stat(u->all->dir_fd, u->name, &st) : 0;

	/* Don't remove U's old name if another file has it on disk by now. */
	if (!name && (err == -ENOENT || (!err && u->ino && st.st_ino != u->ino)))
		return 0;
	if (!err && name && !is_named(u))
		err = -ENOENT;
	if (!err && u->ino && name)
		err = disk_rename(u->all->dir_fd, u->name, u->all->dir_fd, name);
	else if (!err && u->ino)
		err = disk_unlink(u->all->dir_fd, u->name);
	/* U is not on disk yet. If the file that it replaces is, remove that file. */
	if (!err && !u->ino && name) {
		err = disk_unlink(u->all->dir_fd, name);
		if (err == -ENOENT)
			err = 0;
	}
	if (err)
		return err;
	snprintf(u->name, sizeof(u->name), "%s", name ? name : "");
	return 0;
}
