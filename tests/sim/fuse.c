/* SPDX-License-Identifier: MIT */
/*
 * Replaces libfuse, and fs/vfs/park.c and serve.c because their threads would block. This is the
 * FUSE device with its queue of requests and the answers. One handler runs at a time. While a
 * handler waits for the disk, another handler runs, as serve.h describes. During this wait, a
 * signal or the deadline can answer the request of the waiting handler. FORGETs and RELEASEs of the
 * handler's node are delayed until the handler has returned.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <stdio.h>
#include <utlist.h>

#include "fs/vfs/fs.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"
#include "tests/sim/kernel.h"
#include "tests/sim/request.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define TURN_US 20
/* The time that a handler may wait for the disk before park.c answers its request. */
#define HELD_S	    10
#define PATIENCE_MS 200u /* the longest wait for the answer to an interrupted request */
#define SLACK_MS    100u /* two ticks of park's thread */

static struct fuse_req *requests, *handled, *on_disk;
static struct fuse_req *first, **last = &first; /* requests that kxfs has not read */
static bool turn;

/* --- answers, as in libfuse's header --- */

/*
 * True if R was answered early, while its handler waited for the disk. The handler's own answer is
 * then dropped.
 */
static bool is_late(const struct fuse_req *r)
{
	if (r->done && !r->early)
		sim_fail("a request is answered twice");
	return r->done;
}

/* Fail if R has waited longer than allowed. */
static void check_deadline(const struct fuse_req *r)
{
	uint64_t waited = sim_awake() - r->since;
	uint64_t since = r->signalled ? sim_awake() - r->signalled : 0;
	unsigned most = r->parked ? r->most_ms : 1000 * HELD_S;

	if (!r->waiter || r->done)
		return;
	if (!r->endless && waited > (most + SLACK_MS) * SIM_MS)
		sim_fail("%s of %s has waited %llu ms for its answer", r->what,
			 r->name ? r->name : "a file", (unsigned long long)(waited / SIM_MS));
	if (since > PATIENCE_MS * SIM_MS)
		sim_fail("%s of %s is not answered %llu ms after a signal", r->what,
			 r->name ? r->name : "a file", (unsigned long long)(since / SIM_MS));
}

static int answer(fuse_req_t r, int err)
{
	if (is_late(r))
		return -ENOENT;
	check_deadline(r);
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
	if (is_late(req))
		return -ENOENT;
	req->ret = mem_copy(size ? buf : "", size);
	req->ret_len = size;
	return answer(req, 0);
}

int fuse_reply_iov(fuse_req_t req, const struct iovec *iov, int count)
{
	FILE *f;

	if (is_late(req))
		return -ENOENT;
	f = text_stream(&req->ret, &req->ret_len);
	for (int i = 0; i < count; i++)
		fwrite(iov[i].iov_base, 1, iov[i].iov_len, f);
	text_stream_close(f);
	return answer(req, 0);
}

int fuse_reply_entry(fuse_req_t req, const struct fuse_entry_param *e)
{
	if (is_late(req))
		return -ENOENT;
	req->entry = *e;
	return answer(req, 0);
}

int fuse_reply_create(fuse_req_t req, const struct fuse_entry_param *e,
		      const struct fuse_file_info *fi)
{
	if (is_late(req))
		return -ENOENT;
	req->entry = *e;
	req->fi = *fi;
	return answer(req, 0);
}

int fuse_reply_attr(fuse_req_t req, const struct stat *attr, double timeout)
{
	(void)timeout;
	if (is_late(req))
		return -ENOENT;
	req->entry.attr = *attr;
	return answer(req, 0);
}

int fuse_reply_readlink(fuse_req_t req, const char *link)
{
	return fuse_reply_buf(req, link, strlen(link));
}

int fuse_reply_write(fuse_req_t req, size_t count)
{
	if (is_late(req))
		return -ENOENT;
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

static void queue(struct fuse_req *r);

static void handle(void *data)
{
	struct fuse_req *r = data, *k;

	handled = r;
	r->task = sim_task_here();
	r->fn(r);
	r->task = NULL;
	turn = false;
	while ((k = r->kept)) {
		r->kept = k->after;
		k->after = NULL;
		queue(k);
	}
	read_next();
	free(take_ptr(r->buffer));
	if (r->done && !r->waiter) {
		free(r->ret);
		free(r);
	}
}

/* kxfs reads requests in the order in which they were sent. */
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

/* If R's handler is waiting for the disk, answer R now. */
static void answer_early(struct fuse_req *r, int err)
{
	if (!r->held || r->done)
		return;
	answer(r, -err);
	r->early = true;
}

static void on_held(void *data)
{
	answer_early(data, ETIMEDOUT);
}

static void on_held_signal(fuse_req_t req, void *data)
{
	(void)data;
	answer_early(req, EINTR);
}

int serve_disk_begin(struct fs *fs)
{
	struct fuse_req *r = handled;

	(void)fs;
	if (!r || r->task != sim_task_here())
		return 0; /* not the task of a handler */
	r->held = true;
	DL_APPEND2(on_disk, r, disk_prev, disk_next);
	sim_after(HELD_S * SIM_S, SIM_OF_KXFS, on_held, r);
	fuse_req_interrupt_func(r, on_held_signal, NULL);
	turn = false;
	read_next();
	return 0;
}

int serve_disk_end(struct fs *fs)
{
	struct fuse_req *r;

	(void)fs;
	DL_FOREACH2(on_disk, r, disk_next)
		if (r->task == sim_task_here())
			break;
	if (!r)
		return 0;
	while (turn)
		sim_sleep(TURN_US);
	turn = true;
	DL_DELETE2(on_disk, r, disk_prev, disk_next);
	r->held = false;
	fuse_req_interrupt_func(r, NULL, NULL);
	handled = r;
	return r->early ? -EINTR : 0;
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

/*
 * Check that no answered request stays parked, except one that was answered while its handler
 * waited for the disk.
 */
static void check_parked(const struct park *park)
{
	const struct parked *p;

	DL_FOREACH(park->all, p)
		if (p->req->done && !p->req->early)
			sim_fail("an answered request stays parked");
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

	p->ticket = ++park->last;
	p->req = req;
	if (!deadline_ms && kind != PARK_READ)
		sim_fail("a request is parked without a deadline");
	/* Check how long REQ has waited, before SINCE is set to now. */
	check_deadline(req);
	req->endless = !deadline_ms;
	req->parked = true;
	req->since = sim_awake();
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

/* --- request.h --- */

struct fuse_req *request_new(pid_t pid, void (*fn)(struct fuse_req *r), uint64_t node,
			     const char *name)
{
	static struct fuse_ctx us;
	struct fuse_req *r = new0(struct fuse_req);

	if (!us.pid)
		us = (struct fuse_ctx){.uid = geteuid(), .gid = getegid(), .pid = 1};
	r->ctx = us;
	r->ctx.pid = kernel_is_elsewhere(pid) ? 0 : pid;
	r->pid = pid;
	r->fn = fn;
	r->fs = sim_fs;
	r->node = node;
	r->name = name;
	DL_APPEND(requests, r);
	return r;
}

static void queue(struct fuse_req *r)
{
	struct fuse_req *d, **at;

	/* As serve.c does, delay a FORGET or RELEASE until the handler of its node returns. */
	DL_FOREACH2(on_disk, d, disk_next) {
		if (!r->lets_go || d->node != r->node)
			continue;
		for (at = &d->kept; *at;)
			at = &(*at)->after;
		*at = r;
		return;
	}
	*last = r;
	last = &r->after;
	read_next();
}

void request_post(struct fuse_req *r)
{
	if (sim_fs)
		queue(r);
	else
		DL_DELETE(requests, r);
}

int request_ask(struct fuse_req *r)
{
	if (!sim_fs) {
		answer(r, -ENOTCONN);
		return r->err;
	}
	r->waiter = sim_task_here();
	r->since = sim_awake();
	queue(r);
	while (!r->done)
		sim_task_wait();
	return r->err;
}

/* Never free R itself, because its handler may still be running and use R and its buffer. */
void request_drop(struct fuse_req *r)
{
	free(take_ptr(r->ret));
}

void request_signal(struct fuse_req *r)
{
	if (r->done || r->interrupted)
		return;
	r->interrupted = true;
	r->signalled = max_of(sim_awake(), UINT64_C(1));
	if (r->interrupt)
		r->interrupt(r, r->interrupt_data);
}

void request_kill(struct fuse_req *r)
{
	struct fuse_req **at = &first;

	while (*at && *at != r)
		at = &(*at)->after;
	if (!*at || r->forced)
		return request_signal(r);
	*at = r->after;
	if (last == &r->after)
		last = at;
	answer(r, -EINTR);
}

void request_each(void (*fn)(struct fuse_req *r, void *data), void *data)
{
	struct fuse_req *r, *next;

	DL_FOREACH_SAFE(requests, r, next)
		fn(r, data);
}

size_t requests_on_disk(void)
{
	const struct fuse_req *r;
	size_t n = 0;

	DL_COUNT2(on_disk, r, n, disk_next);
	return n;
}

void requests_check(bool still)
{
	struct fuse_req *r;

	if (sim_fs)
		check_parked(sim_fs->park);
	DL_FOREACH(requests, r)
		if (!still)
			check_deadline(r);
}

/* --- the end of a life --- */

void kernel_disconnect(void)
{
	struct fuse_req *r, *next;

	DL_FOREACH_SAFE(requests, r, next)
		answer(r, -ENOTCONN);
	first = on_disk = handled = NULL;
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
	while (requests || on_disk)
		sim_sleep(SIM_MS);
}
