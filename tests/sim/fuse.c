/* SPDX-License-Identifier: MIT */
/*
 * In place of libfuse and of fs/vfs/park.c and serve.c, whose threads wait: the device of FUSE, which requests wait
 * in, and their answers. One handler at a time has the turn; it gives it up while it waits for the disk, as serve.h
 * says: then a signal or the deadline answers its request, and what lets go of its node waits until it has returned.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <utlist.h>

#include "fs/submit/writer.h"
#include "fs/vfs/fs.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define TURN_US	   20
#define MOST_PIDS  4096
#define FIRST_PID  1000
#define READ_MAX   65536u
#define PATIENCE_S 5u

struct fuse_req {
	struct fuse_ctx ctx;
	void (*fn)(struct fuse_req *r);
	uint64_t node, to_node, n;
	const char *name, *to_name, *bytes;
	size_t size;
	off_t off;
	struct fuse_file_info fi;
	fuse_interrupt_func_t interrupt;
	void *interrupt_data;
	bool interrupted;
	char *buffer; /* of its handler */
	/* The answer: */
	bool done;
	int err;
	struct fuse_entry_param entry;
	char *ret;
	size_t ret_len;
	struct sim_task *waiter; /* NULL: nobody waits, it is freed when it is answered */
	struct fuse_req *prev, *next;
	struct fuse_req *after; /* in the queue of the device */
	struct fs *fs;		/* whose it is */
};

static struct fuse_req *requests, *handled;
static struct fuse_req *first, **last = &first; /* that nobody has read yet */
static bool turn;
static struct kernel_file *files;
static bool killed[MOST_PIDS];
static int n_pids;

/* --- answers, as libfuse's header has them --- */

static int answer(fuse_req_t r, int err)
{
	if (r->done)
		sim_fail("a request is answered twice");
	r->done = true;
	r->err = err;
	DL_DELETE(requests, r);
	if (r->waiter)
		sim_task_wake(r->waiter);
	return 0;
}

int fuse_reply_err(fuse_req_t req, int err)
{
	return answer(req, -err);
}

void fuse_reply_none(fuse_req_t req)
{
	answer(req, 0);
}

int fuse_reply_buf(fuse_req_t req, const char *buf, size_t size)
{
	req->ret = mem_copy(size ? buf : "", size);
	req->ret_len = size;
	return answer(req, 0);
}

int fuse_reply_iov(fuse_req_t req, const struct iovec *iov, int count)
{
	FILE *f = text_stream(&req->ret, &req->ret_len);

	for (int i = 0; i < count; i++)
		fwrite(iov[i].iov_base, 1, iov[i].iov_len, f);
	text_stream_close(f);
	return answer(req, 0);
}

int fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e)
{
	req->entry = *e;
	return answer(req, 0);
}

int fuse_reply_create(fuse_req_t req, const struct fuse_entry_param *e,
		      const struct fuse_file_info *fi)
{
	req->entry = *e;
	req->fi = *fi;
	return answer(req, 0);
}

int fuse_reply_attr(fuse_req_t req, const struct stat *attr, double timeout)
{
	(void)attr, (void)timeout;
	return answer(req, 0);
}

int fuse_reply_readlink(fuse_req_t req, const char *link)
{
	return fuse_reply_buf(req, link, strlen(link));
}

int fuse_reply_write(fuse_req_t req, size_t count)
{
	req->ret_len = count;
	return answer(req, 0);
}

int fuse_reply_statfs(fuse_req_t req, const struct statvfs *st)
{
	(void)st;
	return answer(req, 0);
}

int fuse_reply_poll(fuse_req_t req, unsigned events)
{
	(void)events;
	return answer(req, 0);
}

void fuse_pollhandle_destroy(struct fuse_pollhandle *ph)
{
	(void)ph;
}

int fuse_lowlevel_notify_poll(struct fuse_pollhandle *ph)
{
	(void)ph;
	return 0;
}

void *fuse_req_userdata(fuse_req_t req)
{
	return req->fs;
}

const struct fuse_ctx *fuse_req_ctx(fuse_req_t req)
{
	return &req->ctx;
}

void fuse_req_interrupt_func(fuse_req_t req, fuse_interrupt_func_t func, void *data)
{
	req->interrupt = func;
	req->interrupt_data = data;
	if (func && req->interrupted)
		func(req, data);
}

/* --- serve.h --- */

static void read_next(void);

struct serve *serve_new(struct fs *fs)
{
	return (struct serve *)fs;
}

void serve_free(struct serve *s)
{
	(void)s;
}

void serve_finish(struct serve *s)
{
	(void)s;
}

void serve_begin_request(fuse_req_t req)
{
	handled = req;
}

static void handle(void *data)
{
	struct fuse_req *r = data;

	handled = r;
	r->fn(r);
	turn = false;
	read_next();
	free(take_ptr(r->buffer));
	if (r->done && !r->waiter) {
		free(r->ret);
		free(r);
	}
}

/* Requests are read in the order in which they were made. */
static void read_next(void)
{
	struct fuse_req *r = first;

	if (turn || !r)
		return;
	turn = true;
	first = r->after;
	if (!first)
		last = &first;
	sim_task_start(SIM_OF_KXFS, handle, r);
}

int serve_disk_begin(struct fs *fs)
{
	(void)fs;
	turn = false;
	read_next();
	return 0;
}

void serve_disk_end(struct fs *fs)
{
	(void)fs;
	while (turn)
		sim_sleep(TURN_US);
	turn = true;
}

char *serve_buffer(size_t size)
{
	struct fuse_req *r = handled;

	r->buffer = mem_grow(r->buffer, size + 1, 1);
	return r->buffer;
}

/* --- park.h --- */

struct parked {
	uint64_t ticket;
	fuse_req_t req;
	struct parked *prev, *next;
};

struct park {
	uint64_t last;
	struct parked *all;
	bool ended;
};

struct due {
	struct park *park;
	uint64_t ticket;
	int err;
};

struct park *park_new(void)
{
	return new0(struct park);
}

int park_start(struct park *park)
{
	(void)park;
	return 0;
}

void park_stop(struct park *park)
{
	(void)park;
}

void park_free(struct park *park)
{
	free(park);
}

static struct parked *find(const struct park *park, uint64_t ticket)
{
	struct parked *p;

	DL_SEARCH_SCALAR(park->all, p, ticket, ticket);
	return p;
}

fuse_req_t park_claim(struct park *park, uint64_t ticket)
{
	struct parked *p = find(park, ticket);
	fuse_req_t req = p ? p->req : NULL;

	if (!p)
		return NULL;
	DL_DELETE(park->all, p);
	free(p);
	fuse_req_interrupt_func(req, NULL, NULL);
	return req;
}

bool park_waits(struct park *park, uint64_t ticket)
{
	return find(park, ticket);
}

static void on_due(void *data)
{
	struct due *d = data;
	fuse_req_t req = park_claim(d->park, d->ticket);

	if (req)
		fuse_reply_err(req, d->err);
	free(d);
}

static void answer_after(struct park *park, uint64_t ticket, uint64_t us, int err)
{
	struct due *d = new0(struct due);

	*d = (struct due){park, ticket, err};
	sim_after(us, SIM_OF_KXFS, on_due, d);
}

static void on_interrupt(fuse_req_t req, void *data)
{
	struct park *park = data;
	const struct parked *p;

	DL_SEARCH_SCALAR(park->all, p, req, req);
	if (p)
		answer_after(park, p->ticket, 0, EINTR);
}

uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms)
{
	struct parked *p = new0(struct parked);

	(void)kind;
	p->ticket = ++park->last;
	p->req = req;
	DL_APPEND(park->all, p);
	if (park->ended)
		answer_after(park, p->ticket, 0, ENOTCONN);
	if (deadline_ms)
		answer_after(park, p->ticket, deadline_ms * SIM_MS, ETIMEDOUT);
	fuse_req_interrupt_func(req, on_interrupt, park);
	return p->ticket;
}

void park_end(struct park *park)
{
	const struct parked *p;

	park->ended = true;
	DL_FOREACH(park->all, p)
		answer_after(park, p->ticket, 0, ENOTCONN);
}

size_t park_count(struct park *park, enum park_kind kind)
{
	(void)park, (void)kind;
	return 0;
}

/* --- writer.h: what the kernel knows of processes --- */

pid_t kernel_fork(void)
{
	if (n_pids == MOST_PIDS)
		sim_fail("too many processes");
	return FIRST_PID + n_pids++;
}

void kernel_kill(pid_t pid)
{
	killed[pid - FIRST_PID] = true;
}

bool kernel_is_killed(pid_t pid)
{
	return pid >= FIRST_PID && pid < FIRST_PID + n_pids && killed[pid - FIRST_PID];
}

void writer_command(pid_t pid, char *ret, size_t size)
{
	snprintf(ret, size, "user%d", (int)pid - FIRST_PID);
}

pid_t writer_process(pid_t tid)
{
	return tid;
}

int writer_holds(pid_t pid, uint64_t ino, const char *mountpoint)
{
	const struct kernel_file *f;

	(void)mountpoint;
	LL_FOREACH(files, f)
		if (f->open && f->pid == pid && f->ino == ino && (f->flags & O_ACCMODE) != O_RDONLY)
			return 1;
	return 0;
}

/* All users are in our pid namespace, and ours. */
int writer_look(pid_t opener, pid_t wrote, uint64_t ino, const char *mountpoint)
{
	(void)opener, (void)wrote, (void)ino, (void)mountpoint;
	return 0;
}

/* --- requests --- */

static struct fuse_req *request(pid_t pid, void (*fn)(struct fuse_req *r), uint64_t node,
				const char *name)
{
	struct fuse_req *r = new0(struct fuse_req);

	r->ctx = (struct fuse_ctx){.uid = geteuid(), .gid = getegid(), .pid = pid};
	r->fn = fn;
	r->fs = sim_fs;
	r->node = node;
	r->name = name;
	DL_APPEND(requests, r);
	return r;
}

static void queue(struct fuse_req *r)
{
	*last = r;
	last = &r->after;
	read_next();
}

/* Nobody waits for the answer. */
static void post(struct fuse_req *r)
{
	if (sim_fs)
		queue(r);
	else
		DL_DELETE(requests, r);
}

/* The answer's errno; R stays. */
static int ask(struct fuse_req *r)
{
	if (!sim_fs) {
		answer(r, -ENOTCONN);
		return r->err;
	}
	r->waiter = sim_task_here();
	queue(r);
	while (!r->done)
		sim_task_wait();
	return r->err;
}

/* Its handler may still be about to return, with its buffer: R is left, and gone with the history. */
static void drop(struct fuse_req *r)
{
	free(take_ptr(r->ret));
}

void kernel_disconnect(void)
{
	struct fuse_req *r, *next;

	DL_FOREACH_SAFE(requests, r, next)
		answer(r, -ENOTCONN);
	first = NULL;
	last = &first;
	turn = false;
}

void kernel_unmount(struct fs *fs)
{
	struct fuse_req *r;

	while ((r = first)) {
		first = r->after;
		answer(r, -ENOTCONN);
	}
	last = &first;
	park_end(fs->park);
	while (requests)
		sim_sleep(SIM_MS);
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

/* The kernel holds the node of an open file until it has let go of that. */
static void do_release(struct fuse_req *r)
{
	fs_ops.release(r, r->node, &r->fi);
	forget(sim_life(), r->ctx.pid, r->node);
}

static void do_readlink(struct fuse_req *r)
{
	fs_ops.readlink(r, r->node);
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

/* --- paths --- */

struct place {
	unsigned life;
	uint64_t dir, node, ino; /* NODE is 0: there is nothing of that name */
	char name[NAME_MAX + 1];
};

static void forget(unsigned life, pid_t pid, uint64_t node)
{
	struct fuse_req *r;

	if (node <= FUSE_ROOT_ID || life != sim_life())
		return;
	r = request(pid, do_forget, node, NULL);
	r->n = 1;
	post(r);
}

static void leave(const struct place *p, pid_t pid)
{
	forget(p->life, pid, p->dir);
	forget(p->life, pid, p->node);
}

static int find_name(pid_t pid, uint64_t dir, const char *name, uint64_t *ret, uint64_t *ret_ino)
{
	struct fuse_req *r = request(pid, do_lookup, dir, name);
	int err = ask(r);

	*ret = err ? 0 : r->entry.ino;
	if (ret_ino && !err)
		*ret_ino = r->entry.attr.st_ino;
	return err;
}

/* The directory and the node of PATH, both looked up. 0 also where only the last name is not there. */
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

/* As walk, where the last name has to be there. */
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
	r = request(pid, do_readlink, p.node, NULL);
	err = ask(r);
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
	err = ask(request(pid, fn, p.dir, p.name));
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
		r = request(pid, do_rename, p.dir, p.name);
		r->to_node = q.dir;
		r->to_name = q.name;
		err = ask(r);
		leave(&q, pid);
	}
	leave(&p, pid);
	return err;
}

/* --- files --- */

static void opened(struct kernel_file *f, const struct fuse_req *r, bool created)
{
	const struct fuse_open_out *out = (const void *)r->ret;

	f->fh = created ? r->fi.fh : out->fh;
	f->open = true;
	LL_PREPEND(files, f);
}

int kernel_open(struct kernel_file *f, pid_t pid, const char *path, int flags)
{
	struct fuse_req *r;
	struct place p;
	int err;

	do {
		err = flags & O_CREAT ? walk(pid, path, &p) : walk_to(pid, path, &p);
		if (err)
			return err;
		*f = (struct kernel_file){.pid = pid, .life = p.life, .flags = flags, .ino = p.ino};
		if (p.node) {
			r = request(pid, do_open, p.node, NULL);
			r->fi.flags = flags & ~O_CREAT;
		} else {
			r = request(pid, do_create, p.dir, p.name);
			r->fi.flags = flags;
		}
		err = ask(r);
		if (err)
			leave(&p, pid);
	} while (err == -ESTALE || (err == -EEXIST && !p.node));
	if (err)
		return err;
	f->node = p.node ? p.node : r->entry.ino;
	if (!p.node)
		f->ino = r->entry.attr.st_ino;
	forget(p.life, pid, p.dir);
	opened(f, r, !p.node);
	drop(r);
	return 0;
}

static struct fuse_req *on_file(const struct kernel_file *f, void (*fn)(struct fuse_req *r))
{
	struct fuse_req *r = request(f->pid, fn, f->node, NULL);

	r->fi.fh = f->fh;
	r->fi.flags = f->flags;
	return r;
}

int kernel_write(struct kernel_file *f, const char *bytes, size_t n, off_t off)
{
	struct fuse_req *r;
	int err;

	if (f->life != sim_life())
		return -ENOTCONN;
	r = on_file(f, do_write);
	r->bytes = bytes;
	r->size = n;
	r->off = off;
	err = ask(r);
	return !err && r->ret_len != n ? -EIO : err;
}

static void on_impatience(void *data)
{
	const struct fuse_req *r = data;

	if (!r->done)
		sim_fail("a signal has interrupted a request, which is not answered for %u s",
			 PATIENCE_S);
}

/* A disk that hangs, or a server that is silent, holds up nobody whom a signal interrupts. */
static void on_patience(void *data)
{
	/* Where the machine has stood still meanwhile, it is answered just now. */
	sim_after(SIM_S, SIM_OF_KXFS, on_impatience, data);
}

static void on_signal(void *data)
{
	struct fuse_req *r = data;

	if (r->done)
		return;
	r->interrupted = true;
	if (r->interrupt)
		r->interrupt(r, r->interrupt_data);
	sim_after(PATIENCE_S * SIM_S, SIM_OF_KXFS, on_patience, r);
}

int kernel_close(struct kernel_file *f, uint64_t interrupt_us)
{
	struct fuse_req *r;
	int err = -ENOTCONN;

	/* As in filp_close: the descriptor is gone from the process before it asks. */
	f->open = false;
	LL_DELETE(files, f);
	if (f->life == sim_life()) {
		r = on_file(f, do_flush);
		if (interrupt_us)
			sim_after(interrupt_us, SIM_WORLD, on_signal, r);
		err = ask(r);
	}
	if (f->life != sim_life())
		return err;
	post(on_file(f, do_release));
	return err;
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
	if (interrupt_us)
		sim_after(interrupt_us, SIM_WORLD, on_signal, r);
	err = ask(r);
	if (err)
		return err;
	*ret = take_ptr(r->ret);
	return (ssize_t)r->ret_len;
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
	if (strlen(text) < n)
		sim_fail("%s has a zero, which nobody has written", path);
	*ret = text;
	return 0;
}

/* The names in one reply, which the kernel has looked up by it. */
static int count_names(pid_t pid, unsigned life, const struct fuse_req *r, off_t *off)
{
	int n = 0;

	for (size_t at = 0; at < r->ret_len;) {
		const struct fuse_direntplus *d = (const void *)(r->ret + at);
		bool dot = d->dirent.name[0] == '.' && d->dirent.namelen <= 2;

		forget(life, pid, d->entry_out.nodeid);
		n += !dot;
		*off = (off_t)d->dirent.off;
		at += FUSE_DIRENTPLUS_SIZE(d);
	}
	return n;
}

int kernel_count(pid_t pid, const char *path)
{
	struct kernel_file f = {.pid = pid};
	struct fuse_req *r;
	struct place p;
	off_t off = 0;
	int n = 0, err = walk_to(pid, path, &p);

	if (err)
		return err;
	r = request(pid, do_opendir, p.node, NULL);
	err = ask(r);
	if (!err) {
		f.fh = ((const struct fuse_open_out *)(const void *)r->ret)->fh;
		f.node = p.node;
		drop(r);
		do {
			r = on_file(&f, do_readdir);
			r->size = 4096;
			r->off = off;
			err = ask(r);
			if (!err)
				n += count_names(pid, p.life, r, &off);
		} while (!err && r->ret_len);
		forget(p.life, pid, p.dir);
		if (p.life == sim_life())
			post(on_file(&f, do_releasedir));
	} else {
		leave(&p, pid);
	}
	return err ? err : n;
}
