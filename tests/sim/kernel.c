/* SPDX-License-Identifier: MIT */
/*
 * The simulated kernel for tasks that use the mount (kernel.h), and the processes of these tasks.
 * It also replaces fs/submit/writer.c, which reads /proc. The kernel has no cache of names: each
 * call looks up its path and forgets it again. An open file may have several descriptors, of
 * several processes. Closing each of them sends a FLUSH, and closing the last one also a RELEASE.
 */
#include "tests/sim/kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <utlist.h>

#include "fs/submit/writer.h"
#include "fs/vfs/fs.h"
#include "spec/base/mem.h"
#include "tests/sim/request.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define MOST_PIDS 4096
#define FIRST_PID 1000
#define READ_MAX  65536u
#define SIGNAL_S  2

struct process {
	enum kernel_sight sight;
	bool killed;	/* it makes no more calls */
	bool exiting;	/* it was killed, and its descriptors are being closed */
	bool disturbed; /* signals interrupt its requests */
};

/* An open file, to which descriptors refer. */
struct kernel_open {
	unsigned refs;
	unsigned life; /* the life of kxfs in which it was opened */
	uint64_t node, ino, fh;
	int flags;
	bool flushed; /* closing a descriptor sends a FLUSH */
};

static struct process processes[MOST_PIDS];
static int n_pids;
static struct kernel_file *files;

/* --- processes --- */

pid_t kernel_fork(enum kernel_sight sight)
{
	if (n_pids == MOST_PIDS)
		sim_fail("too many processes");
	processes[n_pids].sight = sight;
	return FIRST_PID + n_pids++;
}

static struct process *process(pid_t pid)
{
	return pid >= FIRST_PID && pid < FIRST_PID + n_pids ? &processes[pid - FIRST_PID] : NULL;
}

void kernel_disturb(pid_t pid)
{
	process(pid)->disturbed = true;
}

static void on_kill(struct fuse_req *r, void *data)
{
	const pid_t *pid = data;

	if (r->pid == *pid && r->waiter)
		request_kill(r);
}

void kernel_kill(pid_t pid)
{
	process(pid)->killed = true;
	request_each(on_kill, &pid);
}

bool kernel_is_killed(pid_t pid)
{
	const struct process *p = process(pid);

	return p && p->exiting;
}

bool kernel_is_elsewhere(pid_t pid)
{
	const struct process *p = process(pid);

	return p && p->sight == KERNEL_ELSEWHERE;
}

/* --- writer.h: what /proc shows of the processes --- */

void writer_command(pid_t pid, char *ret, size_t size)
{
	snprintf(ret, size, "user%d", (int)pid - FIRST_PID);
}

pid_t writer_process(pid_t tid, bool *ret_in_exec)
{
	if (ret_in_exec)
		*ret_in_exec = false;
	return tid;
}

int writer_holds(pid_t pid, uint64_t ino, const char *mountpoint)
{
	const struct kernel_file *f;
	const struct process *p = process(pid);

	(void)mountpoint;
	if (!p || p->sight == KERNEL_ELSEWHERE)
		return -ENOENT;
	if (p->sight == KERNEL_HIDDEN)
		return -EACCES;
	LL_FOREACH(files, f)
		if (f->pid == pid && f->of->ino == ino && (f->of->flags & O_ACCMODE) != O_RDONLY)
			return 1;
	return 0;
}

int writer_holds_still(pid_t pid, uint64_t ino, const char *mountpoint)
{
	return writer_holds(pid, ino, mountpoint);
}

/* Check only OPENER, because all processes of a writer have the same kernel_sight. */
int writer_look(pid_t opener, pid_t wrote, uint64_t ino, const char *mountpoint)
{
	const struct process *p = process(opener);

	(void)wrote, (void)ino, (void)mountpoint;
	if (!p || p->sight == KERNEL_ELSEWHERE)
		return -ESRCH;
	return p->sight == KERNEL_HIDDEN ? -EACCES : 0;
}

/* --- requests --- */

static void on_signal(void *data)
{
	request_signal(data);
}

static void do_lookup(struct fuse_req *r)
{
	fs_ops.lookup(r, r->node, r->name);
}

static void do_forget(struct fuse_req *r)
{
	fs_ops.forget(r, r->node, r->n);
}

static void do_open(struct fuse_req *r)
{
	fs_ops.open(r, r->node, &r->fi);
}

static void do_create(struct fuse_req *r)
{
	fs_ops.create(r, r->node, r->name, 0644, &r->fi);
}

static void do_read(struct fuse_req *r)
{
	fs_ops.read(r, r->node, r->size, r->off, &r->fi);
}

static void do_write(struct fuse_req *r)
{
	fs_ops.write(r, r->node, r->bytes, r->size, r->off, &r->fi);
}

static void do_flush(struct fuse_req *r)
{
	fs_ops.flush(r, r->node, &r->fi);
}

static void forget(unsigned life, pid_t pid, uint64_t node);

/* The kernel keeps the node of an open file until it has sent the RELEASE. */
static void do_release(struct fuse_req *r)
{
	fs_ops.release(r, r->node, &r->fi);
	forget(sim_life(), r->ctx.pid, r->node);
}

static void do_readlink(struct fuse_req *r)
{
	fs_ops.readlink(r, r->node);
}

static void do_getattr(struct fuse_req *r)
{
	fs_ops.getattr(r, r->node, NULL);
}

/* ftruncate */
static void do_setattr(struct fuse_req *r)
{
	struct stat attr = {.st_size = r->off};

	fs_ops.setattr(r, r->node, &attr, FUSE_SET_ATTR_SIZE, &r->fi);
}

static void do_fsync(struct fuse_req *r)
{
	fs_ops.fsync(r, r->node, 0, &r->fi);
}

static void do_symlink(struct fuse_req *r)
{
	fs_ops.symlink(r, r->to_name, r->node, r->name);
}

static void do_unlink(struct fuse_req *r)
{
	fs_ops.unlink(r, r->node, r->name);
}

static void do_rmdir(struct fuse_req *r)
{
	fs_ops.rmdir(r, r->node, r->name);
}

static void do_rename(struct fuse_req *r)
{
	fs_ops.rename(r, r->node, r->name, r->to_node, r->to_name, 0);
}

static void do_opendir(struct fuse_req *r)
{
	fs_ops.opendir(r, r->node, &r->fi);
}

static void do_readdir(struct fuse_req *r)
{
	fs_ops.readdirplus(r, r->node, r->size, r->off, &r->fi);
}

static void do_releasedir(struct fuse_req *r)
{
	fs_ops.releasedir(r, r->node, &r->fi);
	forget(sim_life(), r->ctx.pid, r->node);
}

/*
 * Set how long R may be parked (docs/architecture.md, "Threads"). A close waits for the result of
 * the submission, an fsync until its bytes are on disk. The limit of a rename or rmdir is short,
 * because the call blocks its directory while it waits.
 */
static void promise(struct fuse_req *r)
{
	static const struct {
		void (*fn)(struct fuse_req *r);
		const char *what;
		unsigned most_ms;
	} all[] = {
		{do_flush, "a close", 30000},	    {do_rename, "a rename", 3000},
		{do_rmdir, "a rmdir", 3000},	    {do_unlink, "an unlink", 10000},
		{do_open, "an open", 10000},	    {do_create, "a creation", 10000},
		{do_read, "a read", 10000},	    {do_write, "a write", 10000},
		{do_fsync, "an fsync", 30000},	    {do_setattr, "a truncation", 10000},
		{do_getattr, "a stat", 10000},	    {do_lookup, "a look-up", 10000},
		{do_opendir, "an opendir", 10000},  {do_readdir, "a readdir", 10000},
		{do_readlink, "a readlink", 10000}, {do_symlink, "a link", 10000},
		{do_release, "a release", 10000},
	};

	for (size_t i = 0; i < array_size(all); i++)
		if (r->fn == all[i].fn) {
			r->what = all[i].what;
			r->most_ms = all[i].most_ms;
			return;
		}
	sim_fail("a request has no limit in promise()");
}

/*
 * Send R, wait, and return the errno of the answer. The caller must drop R. INTERRUPT_US as in
 * kernel_close.
 */
static int ask(struct fuse_req *r, uint64_t interrupt_us)
{
	const struct process *p = process(r->pid);

	promise(r);
	if (p->killed && !r->forced) {
		fuse_reply_err(r, EINTR);
		return r->err;
	}
	if (!interrupt_us && p->disturbed && sim_chance(SIM_SIGNALS, 50))
		interrupt_us = 1 + sim_delay(SIM_SIGNALS, SIGNAL_S * SIM_S);
	if (interrupt_us)
		sim_after(interrupt_us, SIM_WORLD, on_signal, r);
	return request_ask(r);
}

/* --- paths --- */

struct place {
	unsigned life;
	uint64_t dir, node, ino; /* NODE is 0 if the name does not exist */
	char name[NAME_MAX + 1];
};

static void forget(unsigned life, pid_t pid, uint64_t node)
{
	struct fuse_req *r;

	if (node <= FUSE_ROOT_ID || life != sim_life())
		return;
	r = request_new(pid, do_forget, node, NULL);
	r->n = 1;
	r->lets_go = true;
	request_post(r);
}

static void leave(const struct place *p, pid_t pid)
{
	forget(p->life, pid, p->dir);
	forget(p->life, pid, p->node);
}

static int find_name(pid_t pid, uint64_t dir, const char *name, uint64_t *ret, uint64_t *ret_ino)
{
	struct fuse_req *r = request_new(pid, do_lookup, dir, name);
	int err = ask(r, 0);

	*ret = err ? 0 : r->entry.ino;
	if (ret_ino && !err)
		*ret_ino = r->entry.attr.st_ino;
	return err;
}

/* Look up the directory and the node of PATH. Return 0 even if the last name does not exist. */
static int walk(pid_t pid, const char *path, struct place *p)
{
	int err = 0;

	*p = (struct place){.life = sim_life(), .dir = FUSE_ROOT_ID};
	for (;;) {
		size_t n = strcspn(path, "/");

		snprintf(p->name, sizeof(p->name), "%.*s", (int)n, path);
		err = find_name(pid, p->dir, p->name, &p->node, &p->ino);
		path += n;
		if (err || !*path)
			break;
		path++;
		forget(p->life, pid, p->dir);
		p->dir = p->node;
		p->node = 0;
	}
	if (err == -ENOENT && !*path)
		return 0;
	if (err)
		leave(p, pid);
	return err;
}

/* As walk, but the last name must exist. */
static int walk_to(pid_t pid, const char *path, struct place *p)
{
	int err = walk(pid, path, p);

	if (!err && !p->node) {
		leave(p, pid);
		err = -ENOENT;
	}
	return err;
}

int kernel_stat(pid_t pid, const char *path)
{
	struct place p;
	int err = walk_to(pid, path, &p);

	if (!err)
		leave(&p, pid);
	return err;
}

int kernel_readlink(pid_t pid, const char *path, char **ret)
{
	struct fuse_req *r;
	struct place p;
	int err = walk_to(pid, path, &p);

	if (err)
		return err;
	r = request_new(pid, do_readlink, p.node, NULL);
	err = ask(r, 0);
	leave(&p, pid);
	if (!err)
		*ret = take_ptr(r->ret);
	return err;
}

static int change_name(pid_t pid, const char *path, void (*fn)(struct fuse_req *r))
{
	struct place p;
	int err = walk_to(pid, path, &p);

	if (err)
		return err;
	err = ask(request_new(pid, fn, p.dir, p.name), 0);
	leave(&p, pid);
	return err;
}

int kernel_unlink(pid_t pid, const char *path)
{
	return change_name(pid, path, do_unlink);
}

int kernel_rmdir(pid_t pid, const char *path)
{
	return change_name(pid, path, do_rmdir);
}

int kernel_rename(pid_t pid, const char *from, const char *to)
{
	struct fuse_req *r;
	struct place p, q;
	int err = walk_to(pid, from, &p);

	if (err)
		return err;
	err = walk(pid, to, &q);
	if (!err) {
		r = request_new(pid, do_rename, p.dir, p.name);
		r->to_node = q.dir;
		r->to_name = q.name;
		err = ask(r, 0);
		leave(&q, pid);
	}
	leave(&p, pid);
	return err;
}

static int stat_of(pid_t pid, const char *path, struct stat *ret)
{
	struct fuse_req *r;
	struct place p;
	int err = walk_to(pid, path, &p);

	if (err)
		return err;
	r = request_new(pid, do_getattr, p.node, NULL);
	err = ask(r, 0);
	leave(&p, pid);
	if (!err)
		*ret = r->entry.attr;
	return err;
}

off_t kernel_size(pid_t pid, const char *path)
{
	struct stat st;
	int err = stat_of(pid, path, &st);

	return err ? err : st.st_size;
}

int kernel_symlink(pid_t pid, const char *target, const char *path)
{
	struct fuse_req *r;
	struct place p;
	int err = walk(pid, path, &p);

	if (err)
		return err;
	r = request_new(pid, do_symlink, p.dir, p.name);
	r->to_name = target;
	err = p.node ? -EEXIST : ask(r, 0);
	leave(&p, pid);
	return err;
}

/* --- files --- */

static void file_new(struct kernel_file *f, pid_t pid, struct kernel_open *of)
{
	*f = (struct kernel_file){.pid = pid, .life = of->life, .of = of};
	of->refs++;
	LL_PREPEND(files, f);
}

/* Return a new open file for P, which R has opened. */
static struct kernel_open *opened(const struct place *p, const struct fuse_req *r, int flags)
{
	const struct fuse_open_out *out = (const void *)r->ret;
	struct kernel_open *of = new0(struct kernel_open);

	*of = (struct kernel_open){
		.life = p->life,
		.node = p->node ? p->node : r->entry.ino,
		.ino = p->node ? p->ino : r->entry.attr.st_ino,
		.fh = p->node ? out->fh : r->fi.fh,
		.flags = flags,
		.flushed = !p->node || !(out->open_flags & FOPEN_NOFLUSH),
	};
	return of;
}

int kernel_open(struct kernel_file *f, pid_t pid, const char *path, int flags)
{
	struct fuse_req *r;
	struct place p;
	bool stale = false, again;
	int err;

	do {
		err = flags & O_CREAT ? walk(pid, path, &p) : walk_to(pid, path, &p);
		if (err)
			return err;
		if (p.node && (flags & O_EXCL)) {
			leave(&p, pid);
			return -EEXIST;
		}
		if (p.node) {
			r = request_new(pid, do_open, p.node, NULL);
			r->fi.flags = flags & ~O_CREAT;
		} else {
			r = request_new(pid, do_create, p.dir, p.name);
			r->fi.flags = flags;
		}
		err = ask(r, 0);
		if (err)
			leave(&p, pid);
		again = err == -ESTALE && !stale; /* retry once, as do_filp_open does */
		stale |= again;
	} while (again || (err == -EEXIST && !p.node && !(flags & O_EXCL)));
	if (err)
		return err;
	forget(p.life, pid, p.dir);
	file_new(f, pid, opened(&p, r, flags));
	request_drop(r);
	return 0;
}

void kernel_dup(const struct kernel_file *from, pid_t pid, struct kernel_file *ret)
{
	file_new(ret, pid, from->of);
}

static struct fuse_req *on_file(const struct kernel_file *f, void (*fn)(struct fuse_req *r))
{
	struct fuse_req *r = request_new(f->pid, fn, f->of->node, NULL);

	r->fi.fh = f->of->fh;
	r->fi.flags = f->of->flags;
	/* The lock owner identifies the process. */
	r->fi.lock_owner = (uint64_t)f->pid;
	return r;
}

int kernel_write(struct kernel_file *f, const char *bytes, size_t n, off_t off)
{
	struct fuse_req *r;
	int err;

	if (process(f->pid)->killed)
		return -EINTR;
	if (f->life != sim_life())
		return -ENOTCONN;
	r = on_file(f, do_write);
	r->bytes = bytes;
	r->size = n;
	r->off = off;
	err = ask(r, 0);
	return !err && r->ret_len != n ? -EIO : err;
}

int kernel_fsync(struct kernel_file *f)
{
	return f->life == sim_life() ? ask(on_file(f, do_fsync), 0) : -ENOTCONN;
}

int kernel_truncate(struct kernel_file *f, off_t size)
{
	struct fuse_req *r;

	if (f->life != sim_life())
		return -ENOTCONN;
	r = on_file(f, do_setattr);
	r->off = size;
	return ask(r, 0);
}

/* Drop the descriptor F. If it is the last one of its open file, release the file. */
static void let_go(const struct kernel_file *f)
{
	struct kernel_open *of = f->of;
	struct fuse_req *r;

	if (--of->refs || of->life != sim_life())
		return;
	r = on_file(f, do_release);
	r->lets_go = true;
	request_post(r);
	free(of);
}

void kernel_drop(struct kernel_file *f)
{
	LL_DELETE(files, f);
	let_go(f);
}

int kernel_close(struct kernel_file *f, uint64_t interrupt_us)
{
	const struct kernel_open *of = f->of;
	unsigned life = of->life;
	struct process *p = process(f->pid);
	struct fuse_req *r;
	int err = 0;

	p->exiting = p->killed;
	/* As in filp_close, the process loses the descriptor before the kernel sends the FLUSH. */
	LL_DELETE(files, f);
	if (of->life == sim_life() && of->flushed) {
		r = on_file(f, do_flush);
		r->forced = true;
		err = ask(r, interrupt_us);
	}
	let_go(f);
	return life == sim_life() ? err : -ENOTCONN;
}

ssize_t kernel_read_at(struct kernel_file *f, size_t size, off_t off, uint64_t interrupt_us,
		       char **ret)
{
	struct fuse_req *r;
	int err;

	*ret = NULL;
	if (f->life != sim_life())
		return -ENOTCONN;
	r = on_file(f, do_read);
	r->size = size;
	r->off = off;
	err = ask(r, interrupt_us);
	if (err)
		return err;
	*ret = take_ptr(r->ret);
	return (ssize_t)r->ret_len;
}

/*
 * True if PATH is in the directory of a job whose output was damaged. If a log was cut off while its
 * program was running, the program leaves zero bytes before its next output.
 */
static bool may_have_zeros(const char *path)
{
	const char *job = strchr(path, '/');
	cleanup_free char *name = job ? mem_copy(job + 1, strcspn(job + 1, "/")) : NULL;

	return name && damage_hit(name, false);
}

int kernel_read(pid_t pid, const char *path, char **ret)
{
	struct kernel_file f;
	char *text = NULL;
	size_t n = 0;
	ssize_t got;
	int err = kernel_open(&f, pid, path, O_RDONLY);

	if (err)
		return err;
	do {
		cleanup_free char *bytes = NULL;

		got = kernel_read_at(&f, READ_MAX, (off_t)n, 0, &bytes);
		text = mem_grow(text, n + (got > 0 ? (size_t)got : 0) + 1, 1);
		if (got > 0)
			memcpy(text + n, bytes, (size_t)got);
		n += got > 0 ? (size_t)got : 0;
	} while (got > 0);
	kernel_close(&f, 0);
	if (got < 0) {
		free(text);
		return (int)got;
	}
	text[n] = '\0';
	if (strlen(text) < n && !may_have_zeros(path))
		sim_fail("%s has a zero byte that nobody has written", path);
	*ret = text;
	return 0;
}

/* --- directories --- */

/*
 * Add the names of one READDIRPLUS reply to RET. Each name in it also counts as a lookup, so forget
 * its node.
 */
static void take_names(pid_t pid, unsigned life, const struct fuse_req *r, off_t *off,
		       struct kernel_names *ret)
{
	for (size_t at = 0; at < r->ret_len;) {
		const struct fuse_direntplus *d = (const void *)(r->ret + at);
		bool dot = d->dirent.name[0] == '.' && d->dirent.namelen <= 2;

		forget(life, pid, d->entry_out.nodeid);
		if (!dot) {
			ret->v = mem_grow(ret->v, ret->n + 1, sizeof(*ret->v));
			ret->v[ret->n].name = mem_copy(d->dirent.name, d->dirent.namelen);
			ret->v[ret->n++].dir = d->dirent.type == DT_DIR;
		}
		*off = (off_t)d->dirent.off;
		at += FUSE_DIRENTPLUS_SIZE(d);
	}
}

void kernel_names_clear(struct kernel_names *names)
{
	while (names->n)
		free(names->v[--names->n].name);
	free(take_ptr(names->v));
}

int kernel_list(pid_t pid, const char *path, struct kernel_names *ret)
{
	struct kernel_open of = {0};
	struct kernel_file f = {.pid = pid, .of = &of};
	struct fuse_req *r;
	struct place p;
	off_t off = 0;
	int err = walk_to(pid, path, &p);

	*ret = (struct kernel_names){0};
	if (err)
		return err;
	r = request_new(pid, do_opendir, p.node, NULL);
	err = ask(r, 0);
	if (err) {
		leave(&p, pid);
		return err;
	}
	of.fh = ((const struct fuse_open_out *)(const void *)r->ret)->fh;
	of.node = p.node;
	request_drop(r);
	do {
		r = on_file(&f, do_readdir);
		r->size = 4096;
		r->off = off;
		err = p.life == sim_life() ? ask(r, 0) : -ENOTCONN;
		if (!err)
			take_names(pid, p.life, r, &off, ret);
		request_drop(r);
	} while (!err && r->ret_len);
	forget(p.life, pid, p.dir);
	if (p.life == sim_life()) {
		r = on_file(&f, do_releasedir);
		r->lets_go = true;
		request_post(r);
	}
	if (err)
		kernel_names_clear(ret);
	return err;
}
