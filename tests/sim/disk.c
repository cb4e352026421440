/* SPDX-License-Identifier: MIT */
/*
 * Replaces backend/base/disk.c by disks in memory. The task that makes a call waits for a while;
 * then the operation happens in one step. So kxfs can be killed between any two calls, and the
 * calls of concurrent tasks interleave. Descriptors are numbers far above the real ones. The linker
 * wraps close(), so that it accepts them.
 */

#include <errno.h>
#include <fcntl.h>

#include "backend/base/disk.h"
#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "spec/base/mem.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define FIRST_FD (1 << 20)
/* Each open log has one descriptor, and a second one during a call. Each helper has two. */
#define MOST_FDS  1024
#define SECTOR	  512u
#define MOST_FILE (64u << 20)
#define HANGS_S	  60
#define REFUSES_S 30

struct inode;

struct entry {
	char *name;
	struct inode *inode;
};

/* A change of a directory entry that is not synced yet. */
struct change {
	char *name;
	struct inode *was;  /* the inode that had the name; NULL: the name was free */
	struct inode *from; /* the source directory of a rename */
	char *from_name;
	unsigned from_syncs; /* the value of FROM's SYNCS at the rename */
};

struct inode {
	ino_t n;
	mode_t mode;
	unsigned links;
	int64_t mtime;
	bool appended;	   /* it was opened with O_APPEND */
	char *data, *sure; /* the contents of a file, and the synced contents */
	size_t size, sure_size;
	struct entry *v; /* of a directory */
	size_t n_entries;
	struct change *changes;
	size_t n_changes;
	unsigned syncs;		    /* how often it was synced */
	void *socket;		    /* the listener, if this inode is a socket */
	struct sim_process *locked; /* the process that locked it last */
};

struct descriptor {
	struct inode *inode; /* NULL if it is free */
	int flags;
	size_t at;
	struct sim_process *owner; /* NULL: kxfs */
};

/* The mounted disks. */
static struct {
	const char *path;
	struct inode *root;
} mounts[] = {{.path = "/state"}, {.path = SIM_ARCHIVE_DIR}};
static struct descriptor fds[MOST_FDS];
static ino_t last_ino;
static bool mended;
static uint64_t hangs_until, refuses_until; /* us */
static unsigned hung_life;		    /* the last life in which a call has hung */

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_memfd_create(const char *name, unsigned flags);
int __wrap_flock(int fd, int how);

/* --- names --- */

static struct inode *inode_new(mode_t mode)
{
	sim_of_world();
	struct inode *i = new0(struct inode);

	i->n = ++last_ino;
	i->mode = mode;
	i->mtime = loop_time_ns();
	return i;
}

static struct entry *find(const struct inode *dir, const char *name)
{
	for (size_t i = 0; i < dir->n_entries; i++)
		if (streq(dir->v[i].name, name))
			return &dir->v[i];
	return NULL;
}

static void put(struct inode *dir, const char *name, struct inode *inode)
{
	struct entry *e = find(dir, name);

	sim_of_world();
	if (e)
		e->inode->links--;
	if (e && !inode) {
		free(e->name);
		memmove(e, e + 1, (size_t)(dir->v + dir->n_entries - (e + 1)) * sizeof(*e));
		dir->n_entries--;
	}
	if (!inode)
		return;
	if (!e) {
		dir->v = mem_grow(dir->v, dir->n_entries + 1, sizeof(*e));
		e = &dir->v[dir->n_entries++];
		e->name = text_copy(name);
	}
	e->inode = inode;
	inode->links++;
}

/*
 * Set NAME in DIR to INODE, or remove NAME if INODE is NULL. In a rename, FROM and FROM_NAME are
 * the old directory and the old name; otherwise they are NULL.
 */
static void change(struct inode *dir, const char *name, struct inode *inode, struct inode *from,
		   const char *from_name)
{
	sim_of_world();
	const struct entry *e = find(dir, name);
	struct change c = {text_copy(name), e ? e->inode : NULL, from,
			   from_name ? text_copy(from_name) : NULL, from ? from->syncs : 0};

	dir->changes = mem_grow(dir->changes, dir->n_changes + 1, sizeof(c));
	dir->changes[dir->n_changes++] = c;
	dir->mtime = loop_time_ns();
	put(dir, name, inode);
}

/* --- faults --- */

enum sort { READS, WRITES };

unsigned sim_disk_hung_life(void)
{
	return hung_life;
}

/* Return how long the current call hangs, in us; usually 0. */
static uint64_t hang(void)
{
	if (!mended && sim_now() >= hangs_until && sim_chance(SIM_DISK, sim_faults.hangs)) {
		uint64_t us = sim_delay(SIM_DISK, HANGS_S * SIM_S);
		bool all = sim_chance(SIM_DISK, 500);

		sim_log("disk", "%s for %llu ms", all ? "hangs" : "has a call that hangs",
			(unsigned long long)(us / SIM_MS));
		hung_life = sim_life();
		if (!all)
			return us;
		hangs_until = sim_now() + us;
	}
	return sim_now() < hangs_until ? hangs_until - sim_now() : 0;
}

/*
 * Let the calling task wait. Return 0, or the error with which the call fails. After one in four
 * failed writes, the disk refuses all writes for a while.
 */
static int call(enum sort sort)
{
	static const int errors[] = {-EIO, -ESTALE, -ENOSPC, -EDQUOT};
	uint64_t us = sim_delay(SIM_DISK, 2 * SIM_MS);

	if (lock_held)
		sim_fail("kxfs calls the disk while it holds a lock");
	if (!sim_task_here())
		sim_fail("the disk is called outside a task, where nothing may wait");
	if (!mended && sim_chance(SIM_DISK, sim_faults.slow))
		us = sim_delay(SIM_DISK, 4 * SIM_S);
	sim_sleep(us + hang());
	if (!mended && sort == WRITES && sim_now() < refuses_until)
		return -EROFS;
	if (mended || !sim_chance(SIM_DISK, sim_faults.disk_error))
		return 0;
	if (sort == WRITES && sim_chance(SIM_DISK, 250)) {
		us = sim_delay(SIM_DISK, REFUSES_S * SIM_S);
		sim_log("disk", "refuses writes for %llu ms", (unsigned long long)(us / SIM_MS));
		refuses_until = sim_now() + us;
		if (sim_faults.power_cut && sim_chance(SIM_DISK, 300))
			sim_kxfs_power_cut(us);
		return -EROFS;
	}
	return errors[sim_below(SIM_DISK, sort == READS ? 2 : array_size(errors))];
}

/* --- paths --- */

static struct descriptor *descriptor(int fd)
{
	if (fd < FIRST_FD || fd >= FIRST_FD + MOST_FDS || !fds[fd - FIRST_FD].inode)
		sim_fail("kxfs uses descriptor %d, which is not open", fd);
	return &fds[fd - FIRST_FD];
}

/* Find the directory and the last name of PATH. */
static int walk(int at, const char *path, struct inode **ret_dir, char name[NAME_MAX + 1])
{
	struct inode *dir = NULL;

	if (*path == '/') {
		for (size_t i = 0; i < array_size(mounts) && !dir; i++)
			if (strncmp(path, mounts[i].path, strlen(mounts[i].path)) == 0) {
				path += strlen(mounts[i].path);
				dir = mounts[i].root;
			}
		if (!dir)
			return -ENOENT;
	} else {
		dir = descriptor(at)->inode;
	}
	*name = '\0';
	for (;;) {
		const struct entry *e;
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (!n)
			break;
		if (n > NAME_MAX)
			return -ENAMETOOLONG;
		if (*name) {
			e = find(dir, name);
			if (!e)
				return -ENOENT;
			dir = e->inode;
		}
		if (!S_ISDIR(dir->mode))
			return -ENOTDIR;
		memcpy(name, path, n);
		name[n] = '\0';
		path += n;
	}
	*ret_dir = dir;
	return 0;
}

static int lookup(int at, const char *path, struct inode **ret)
{
	char name[NAME_MAX + 1];
	struct inode *dir;
	const struct entry *e;
	int err = walk(at, path, &dir, name);

	if (err)
		return err;
	e = *name && !streq(name, ".") ? find(dir, name) : NULL;
	if (*name && !streq(name, ".") && !e)
		return -ENOENT;
	*ret = e ? e->inode : dir;
	return 0;
}

static void set_size(struct inode *i, size_t size)
{
	if (size > i->size) {
		sim_of_world();

		i->data = mem_grow(i->data, size, 1);
		memset(i->data + i->size, 0, size - i->size);
	}
	i->size = size;
	i->mtime = loop_time_ns();
}

static int fd_new(struct inode *i, int flags)
{
	for (int n = 0; n < MOST_FDS; n++) {
		if (fds[n].inode)
			continue;
		fds[n] = (struct descriptor){i, flags, 0, sim_process_here()};
		return FIRST_FD + n;
	}
	sim_fail("too many descriptors are open");
}

int disk_open(int at, const char *path, int flags)
{
	char name[NAME_MAX + 1];
	struct inode *dir, *i = NULL;
	const struct entry *e;
	int err = call(flags & (O_CREAT | O_TRUNC) ? WRITES : READS);

	if (!err)
		err = walk(at, path, &dir, name);
	if (err)
		return err;
	e = *name && !streq(name, ".") ? find(dir, name) : NULL;
	i = e ? e->inode : *name && !streq(name, ".") ? NULL : dir;
	if (!i && !(flags & O_CREAT))
		return -ENOENT;
	if (i && (flags & O_EXCL))
		return -EEXIST;
	if (i && (flags & O_DIRECTORY) && !S_ISDIR(i->mode))
		return -ENOTDIR;
	if (i && S_ISDIR(i->mode) && (flags & O_ACCMODE) != O_RDONLY)
		return -EISDIR;
	if (!i) {
		i = inode_new(S_IFREG | 0600);
		change(dir, name, i, NULL, NULL);
	} else if (flags & O_TRUNC) {
		set_size(i, 0);
	}
	i->appended |= flags & O_APPEND;
	return fd_new(i, flags);
}

int __wrap_close(int fd)
{
	if (fd < FIRST_FD)
		return __real_close(fd);
	if (sim_socket_close(fd))
		return 0;
	descriptor(fd)->inode = NULL;
	return 0;
}

int disk_mkdir(int at, const char *path)
{
	char name[NAME_MAX + 1];
	struct inode *dir;
	int err = call(WRITES);

	if (!err)
		err = walk(at, path, &dir, name);
	if (!err && (!*name || find(dir, name)))
		err = -EEXIST;
	if (!err)
		change(dir, name, inode_new(S_IFDIR | 0700), NULL, NULL);
	return err;
}

int disk_stat(int at, const char *path, struct stat *ret)
{
	struct inode *i;
	int err = call(READS);

	if (!err)
		err = lookup(at, path, &i);
	if (err)
		return err;
	*ret = (struct stat){
		.st_dev = 7,
		.st_ino = i->n,
		.st_mode = i->mode,
		.st_nlink = i->links,
		.st_uid = geteuid(),
		.st_gid = getegid(),
		.st_size = (off_t)i->size,
		.st_blocks = (blkcnt_t)((i->size + SECTOR - 1) / SECTOR),
		.st_blksize = 4096,
		.st_mtim = {i->mtime / 1000000000, i->mtime % 1000000000},
		.st_ctim = {i->mtime / 1000000000, i->mtime % 1000000000},
	};
	return 0;
}

int disk_access(int at, const char *path, int mode)
{
	struct inode *i;
	int err = call(READS);

	(void)mode;
	return err ? err : lookup(at, path, &i);
}

/* --- bytes --- */

ssize_t disk_pread(int fd, void *buf, size_t n, uint64_t off)
{
	const struct inode *i = descriptor(fd)->inode;
	int err = call(READS);

	if (err)
		return err;
	n = off >= i->size ? 0 : min_of(n, i->size - off);
	if (n)
		memcpy(buf, i->data + off, n);
	return (ssize_t)n;
}

ssize_t disk_pwrite(int fd, const void *buf, size_t n, uint64_t off)
{
	struct inode *i = descriptor(fd)->inode;
	int err = call(WRITES);

	if (err)
		return err;
	if (off + n > MOST_FILE)
		return -EFBIG;
	/* A short write, as on a disk that is nearly full. */
	if (n > 1 && !mended && sim_chance(SIM_DISK, sim_faults.disk_error))
		n = 1 + sim_below(SIM_DISK, (unsigned)n - 1);
	if (off + n > i->size)
		set_size(i, off + n);
	if (n)
		memcpy(i->data + off, buf, n);
	i->mtime = loop_time_ns();
	return (ssize_t)n;
}

ssize_t disk_append(int fd, const void *buf, size_t n)
{
	struct descriptor *d = descriptor(fd);
	ssize_t done = disk_pwrite(fd, buf, n, d->flags & O_APPEND ? d->inode->size : d->at);

	if (done > 0)
		d->at += (size_t)done;
	return done;
}

int disk_truncate(int fd, uint64_t size)
{
	int err = call(WRITES);

	if (!err)
		set_size(descriptor(fd)->inode, size);
	return err;
}

int disk_reserve(int fd, uint64_t size, bool grow)
{
	struct inode *i = descriptor(fd)->inode;
	int err = call(WRITES);

	if (!err && grow && size > i->size)
		set_size(i, size);
	return err;
}

static void keep(struct inode *i)
{
	sim_of_world();

	free(i->sure);
	i->sure = mem_copy(i->data ? i->data : "", i->size);
	i->sure_size = i->size;
	for (size_t k = 0; k < i->n_changes; k++) {
		free(i->changes[k].name);
		free(i->changes[k].from_name);
	}
	i->n_changes = 0;
	i->syncs++;
}

int disk_sync(int fd)
{
	struct inode *i = descriptor(fd)->inode;
	int err = call(WRITES);

	if (!err)
		keep(i);
	return err;
}

int disk_sync_data(int fd)
{
	return disk_sync(fd);
}

/* --- changes of names --- */

int disk_rename(int from_at, const char *from, int to_at, const char *to)
{
	char name[NAME_MAX + 1], new_name[NAME_MAX + 1];
	struct inode *dir, *new_dir, *i;
	const struct entry *e, *there;
	int err = call(WRITES);

	if (!err)
		err = walk(from_at, from, &dir, name);
	if (!err)
		err = walk(to_at, to, &new_dir, new_name);
	if (err)
		return err;
	e = find(dir, name);
	there = find(new_dir, new_name);
	if (!e)
		return -ENOENT;
	i = e->inode;
	if (there && there->inode == i)
		return 0;
	if (there && S_ISDIR(there->inode->mode) && there->inode->n_entries)
		return -ENOTEMPTY;
	change(new_dir, new_name, i, dir, name);
	change(dir, name, NULL, NULL, NULL);
	return 0;
}

static int take_away(int at, const char *path, bool is_dir)
{
	char name[NAME_MAX + 1];
	struct inode *dir;
	const struct entry *e;
	int err = call(WRITES);

	if (!err)
		err = walk(at, path, &dir, name);
	if (err)
		return err;
	e = find(dir, name);
	if (!e)
		return -ENOENT;
	if (is_dir != S_ISDIR(e->inode->mode))
		return is_dir ? -ENOTDIR : -EISDIR;
	if (e->inode->n_entries)
		return -ENOTEMPTY;
	change(dir, name, NULL, NULL, NULL);
	return 0;
}

int disk_unlink(int at, const char *path)
{
	return take_away(at, path, false);
}

int disk_rmdir(int at, const char *path)
{
	return take_away(at, path, true);
}

int disk_chmod(int at, const char *path, mode_t mode)
{
	struct inode *i;
	int err = call(WRITES);

	if (!err)
		err = lookup(at, path, &i);
	if (!err)
		i->mode = (i->mode & S_IFMT) | (mode & 07777);
	return err;
}

int disk_chown(int fd, uid_t uid, gid_t gid)
{
	(void)fd, (void)uid, (void)gid;
	return call(WRITES);
}

int disk_touch(int at, const char *path, int64_t mtime_ns)
{
	struct inode *i;
	int err = call(WRITES);

	if (!err)
		err = lookup(at, path, &i);
	if (!err)
		i->mtime = mtime_ns < 0 ? loop_time_ns() : mtime_ns;
	return err;
}

int disk_list(int at, const char *path, disk_name_fn fn, void *data)
{
	cleanup_fd int fd = disk_open(at, path, O_RDONLY | O_DIRECTORY);
	const struct inode *dir = fd < 0 ? NULL : descriptor(fd)->inode;
	size_t n = dir ? dir->n_entries : 0;
	struct entry *v cleanup_free = mem_zero((n + 1) * sizeof(*v));
	int err = fd < 0 ? fd : 0;

	for (size_t i = 0; i < n; i++)
		v[i] = (struct entry){text_copy(dir->v[i].name), dir->v[i].inode};
	for (size_t i = 0; i < n && !err; i++)
		err = fn(data, fd, v[i].name, S_ISDIR(v[i].inode->mode) ? DT_DIR : DT_REG);
	for (size_t i = 0; i < n; i++)
		free(v[i].name);
	return err;
}

/* --- the files of helpers: a socket, a lock, and unnamed instructions --- */

int sim_disk_bind(int at, const char *name, void *socket)
{
	struct inode *dir = descriptor(at)->inode, *i;

	if (find(dir, name))
		return -EADDRINUSE;
	i = inode_new(S_IFSOCK | 0700);
	i->socket = socket;
	change(dir, name, i, NULL, NULL);
	return 0;
}

int sim_disk_find_socket(int at, const char *name, void **ret)
{
	const struct entry *e = find(descriptor(at)->inode, name);

	if (!e)
		return -ENOENT;
	*ret = e->inode->socket;
	return 0;
}

int __wrap_memfd_create(const char *name, unsigned flags)
{
	struct inode *i = inode_new(S_IFREG | 0600);

	(void)name, (void)flags;
	i->links = 1;
	return fd_new(i, O_RDWR);
}

int sim_disk_give(int fd, struct sim_process *p)
{
	struct descriptor *d = descriptor(fd);
	int given = fd_new(d->inode, d->flags);

	descriptor(given)->owner = p;
	return given;
}

/* A helper's lock is released once the helper and its guard are dead. kxfs only tests the lock. */
int __wrap_flock(int fd, int how)
{
	struct descriptor *d = descriptor(fd);
	const struct sim_process *by = d->inode->locked;

	(void)how;
	if (d->owner)
		d->inode->locked = d->owner;
	else if (by && (!by->dead || by->guarded)) {
		errno = EWOULDBLOCK;
		return -1;
	}
	return 0;
}

size_t sim_disk_n_open(void)
{
	size_t n = 0;

	for (size_t i = 0; i < MOST_FDS; i++)
		n += fds[i].inode && !fds[i].owner;
	return n;
}

void sim_disk_close_of(const struct sim_process *p)
{
	for (size_t i = 0; i < MOST_FDS; i++)
		if (fds[i].inode && fds[i].owner == p)
			fds[i].inode = NULL;
}

/* --- sim.h --- */

void sim_disk_make(void)
{
	for (size_t i = 0; i < array_size(mounts); i++) {
		mounts[i].root = inode_new(S_IFDIR | 0700);
		mounts[i].root->links = 1;
	}
}

void sim_disk_mend(void)
{
	mended = true;
	hangs_until = 0;
}

void sim_disk_kill(void)
{
	sim_disk_close_of(NULL);
}

static void cut_file(struct inode *i)
{
	cleanup_free char *mixed = NULL;
	size_t least = min_of(i->size, i->sure_size), most = max_of(i->size, i->sure_size), size;
	unsigned how = sim_below(SIM_DISK, 3);

	if (i->size == i->sure_size && (!i->size || memcmp(i->data, i->sure, i->size) == 0))
		return;
	/* Appended bytes reach the disk in order, and then the file gets its new size. */
	if (i->appended && i->size >= i->sure_size &&
	    !(i->sure_size && memcmp(i->data, i->sure, i->sure_size) != 0)) {
		i->size =
			how == 1 ? i->sure_size : least + sim_random(SIM_DISK) % (most - least + 1);
		return;
	}
	if (how == 0)
		return;
	size = how == 1 ? i->sure_size : least + sim_random(SIM_DISK) % (most - least + 1);
	mixed = mem_zero(size + 1);
	for (size_t at = 0; at < size; at += SECTOR) {
		bool old = how == 1 || sim_chance(SIM_DISK, 500);
		size_t n = min_of((size_t)SECTOR, size - at);
		size_t has = old ? i->sure_size : i->size;

		if (at < has)
			memcpy(mixed + at, (old ? i->sure : i->data) + at, min_of(n, has - at));
	}
	i->data = mem_grow(i->data, size + 1, 1);
	memcpy(i->data, mixed, size);
	i->size = size;
}

/* Append to V each inode that is reachable from I now, or after unsynced changes are undone. */
static void collect(struct inode *i, struct inode ***v, size_t *n)
{
	for (size_t k = 0; k < *n; k++)
		if ((*v)[k] == i)
			return;
	*v = mem_grow(*v, *n + 1, sizeof(struct inode *));
	(*v)[(*n)++] = i;
	for (size_t k = 0; k < i->n_entries; k++)
		collect(i->v[k].inode, v, n);
	for (size_t k = 0; k < i->n_changes; k++)
		if (i->changes[k].was)
			collect(i->changes[k].was, v, n);
}

/*
 * Undo the changes of DIR from the K-th on, because the power cut has lost them. A file that a
 * rename moved into DIR returns to its old directory.
 */
static void undo(struct inode *dir, size_t k)
{
	for (size_t i = dir->n_changes; i-- > k;) {
		const struct change *c = &dir->changes[i];
		const struct entry *e = find(dir, c->name);
		struct inode *moved = c->from && e ? e->inode : NULL;

		put(dir, c->name, c->was);
		/* A rename is atomic, so a directory never has two names. */
		if (c->was && S_ISDIR(c->was->mode) && c->was->links > 1)
			put(dir, c->name, NULL);
		if (moved && moved->links == 0 && !find(c->from, c->from_name))
			put(c->from, c->from_name, moved);
	}
}

/*
 * Return the number of DIR's changes that a power cut can't undo. A rename changes two directories
 * in one transaction. So if the source directory was synced after the rename, DIR keeps the new
 * name and all its earlier changes.
 */
static size_t n_kept(const struct inode *dir)
{
	size_t n = dir->n_changes;

	while (n && !(dir->changes[n - 1].from &&
		      dir->changes[n - 1].from->syncs > dir->changes[n - 1].from_syncs))
		n--;
	return n;
}

void sim_disk_power_cut(void)
{
	struct inode **v = NULL;
	size_t n = 0;

	for (size_t i = 0; i < array_size(mounts); i++)
		collect(mounts[i].root, &v, &n);
	for (size_t i = 0; i < n; i++) {
		size_t kept = n_kept(v[i]), lost = v[i]->n_changes - kept;

		if (S_ISDIR(v[i]->mode))
			undo(v[i], kept + (lost ? sim_random(SIM_DISK) % (lost + 1) : 0));
		else
			cut_file(v[i]);
	}
	for (size_t i = 0; i < n; i++)
		keep(v[i]);
	free(v);
}

void sim_disk_flip(const char *path, size_t at, size_t n, unsigned bits)
{
	struct inode *i;

	if (lookup(-1, path, &i))
		return;
	for (; n > 0; n--)
		i->data[at++] ^= (char)bits;
	keep(i);
}

void sim_disk_cut(const char *path, size_t size)
{
	struct inode *i;

	if (lookup(-1, path, &i))
		return;
	i->size = size;
	keep(i);
}

const unsigned char *sim_disk_look(const char *path, size_t *ret_n)
{
	struct inode *i;

	if (lookup(-1, path, &i) || !S_ISREG(i->mode))
		return NULL;
	*ret_n = i->size;
	return (const unsigned char *)(i->size ? i->data : "");
}

const char *sim_disk_name(const char *path, size_t i)
{
	struct inode *dir;

	return !lookup(-1, path, &dir) && i < dir->n_entries ? dir->v[i].name : NULL;
}

static void print(const struct inode *i, const char *name, FILE *out)
{
	fprintf(out, "%s %zu\n", name, i->size);
	if (i->size)
		fwrite(i->data, 1, i->size, out);
	for (size_t k = 0; k < i->n_entries; k++)
		print(i->v[k].inode, i->v[k].name, out);
}

char *sim_disk_text(const char *path)
{
	struct inode *i;
	char *text;
	size_t len;
	FILE *out;

	if (lookup(-1, path, &i))
		return NULL;
	out = text_stream(&text, &len);
	print(i, "", out);
	text_stream_close(out);
	return text;
}
