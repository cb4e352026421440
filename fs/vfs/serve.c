/* SPDX-License-Identifier: MIT */
/*
 * The threads that serve a session; see serve.h. When a request waits long for a disk, park.c
 * starts another thread, unless one already waits for requests. A thread that has finished its
 * request exits if another one waits for requests.
 *
 * park.c may answer a request while its handler still runs. Then the kernel may send a FORGET or
 * RELEASE for what the handler still uses. kxfs keeps such messages until the handler has returned.
 */
#include "fs/vfs/serve.h"

#include <errno.h>
#include <linux/fuse.h>
#include <signal.h>
#include <utlist.h>

#include "backend/base/lock.h"
#include "backend/base/thread.h"
#include "fs/vfs/park.h"
#include "spec/base/mem.h"

/* The most requests that wait for a disk at the same time. Each occupies a thread. */
#define SERVE_MOST 32

struct kept {
	struct fuse_buf buf;
	struct kept *prev, *next;
};

struct server {
	struct serve *all;
	pthread_t thread;
	struct server *prev, *next; /* under the lock */
	fuse_req_t req;		    /* the request in progress */
	uint64_t unique, nodeid;    /* number and node of REQ */
	uint64_t ticket;	    /* ticket of REQ while ON_DISK is true */
	/* true if the handler waits for a disk; written under both locks */
	bool on_disk;
	/* FORGETs and RELEASEs to process after the handler; under the session lock */
	struct kept *kept;
	char *buffer;
	size_t buffer_size;
};

struct serve {
	struct fs *fs;
	struct fuse_session *se;
	int err; /* the error that ended the session, or 0 */
	/*
	 * The session lock. Not a struct lock, because a thread that has a struct lock must not
	 * reply or render.
	 */
	pthread_mutex_t session;
	struct lock lock;
	pthread_cond_t ended;
	/* Under the lock: */
	struct server *servers;
	unsigned n, on_disk; /* the number of servers, and of those with ON_DISK */
};

static _Thread_local struct server *server_here;

struct serve *serve_new(struct fs *fs)
{
	struct serve *s = new0(struct serve);

	s->fs = fs;
	s->lock = (struct lock)LOCK_INIT;
	pthread_mutex_init(&s->session, NULL);
	pthread_cond_init(&s->ended, NULL);
	return s;
}

void serve_free(struct serve *s)
{
	if (!s)
		return;
	assert(!s->servers);
	pthread_mutex_destroy(&s->session);
	pthread_cond_destroy(&s->ended);
	free(s);
}

/* --- requests --- */

static bool lets_go_of(const struct fuse_buf *buf, uint64_t id)
{
	const struct fuse_in_header *in = buf->mem;
	const struct fuse_batch_forget_in *batch = (const void *)(in + 1);
	const struct fuse_forget_one *one = (const void *)(batch + 1);

	if (in->opcode == FUSE_FORGET || in->opcode == FUSE_RELEASE ||
	    in->opcode == FUSE_RELEASEDIR)
		return in->nodeid == id;
	if (in->opcode != FUSE_BATCH_FORGET)
		return false;
	for (uint32_t i = 0; i < batch->count; i++)
		if (one[i].nodeid == id)
			return true;
	return false;
}

/*
 * If BUF is a FORGET or RELEASE of a node that a server still uses, keep a copy for that server,
 * and return true. The caller holds the session lock.
 */
static bool keep(struct serve *s, const struct fuse_buf *buf)
{
	struct server *other;
	struct kept *k;

	lock_scope(&s->lock);
	DL_FOREACH(s->servers, other)
		if (other->on_disk && lets_go_of(buf, other->nodeid))
			break;
	if (!other)
		return false;
	k = new0(struct kept);
	k->buf = (struct fuse_buf){.mem = mem_copy(buf->mem, buf->size), .size = buf->size};
	DL_APPEND(other->kept, k);
	return true;
}

static void handle(struct server *me, const struct fuse_buf *buf)
{
	const struct fuse_in_header *in = buf->mem;
	struct serve *s = me->all;

	pthread_mutex_lock(&s->session);
	if (!keep(s, buf)) {
		me->unique = in->unique;
		me->nodeid = in->nodeid;
		fuse_session_process_buf(s->se, buf);
	}
	while (me->kept) {
		struct kept *k = me->kept;

		DL_DELETE(me->kept, k);
		if (!keep(s, &k->buf))
			fuse_session_process_buf(s->se, &k->buf);
		free(k->buf.mem);
		free(k);
	}
	pthread_mutex_unlock(&s->session);
}

/*
 * True if this thread must continue to serve. If another thread is serving, or the session has
 * ended, remove this thread from the list and return false.
 */
static bool stay(struct server *me)
{
	struct serve *s = me->all;

	lock_scope(&s->lock);
	if (!fuse_session_exited(s->se) && s->n - s->on_disk == 1)
		return true;
	DL_DELETE(s->servers, me);
	s->n--;
	pthread_cond_signal(&s->ended);
	return false;
}

static void *server_run(void *data)
{
	struct server *me = data;
	struct fuse_session *se = me->all->se;
	struct fuse_buf buf = {0};
	sigset_t wake;

	server_here = me;
	sigemptyset(&wake);
	sigaddset(&wake, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &wake, NULL);
	do {
		int n = fuse_session_receive_buf(se, &buf);

		if (n > 0)
			handle(me, &buf);
		else if (n != -EINTR)
			fuse_session_exit(se);
		if (n < 0 && n != -EINTR)
			me->all->err = n;
	} while (stay(me));
	free(buf.mem);
	free(me->buffer);
	free(me);
	return NULL;
}

/* Start a serving thread. Return -EBUSY if one is free to serve, or if there are too many. */
static int server_start(struct serve *s)
{
	struct server *me = new0(struct server);
	int err = -EBUSY;

	me->all = s;
	{
		lock_scope(&s->lock);
		if (s->n <= s->on_disk && s->n <= SERVE_MOST)
			err = thread_start(server_run, me, &me->thread);
		if (err == 0) {
			pthread_detach(me->thread);
			DL_APPEND(s->servers, me);
			s->n++;
		}
	}
	if (err)
		free(me);
	return err;
}

/* --- waiting for a disk --- */

int serve_disk_begin(struct fs *fs)
{
	struct server *me = server_here;
	struct serve *s = fs->serve;

	if (!me)
		return 0;
	{
		lock_scope(&s->lock);
		if (s->on_disk == SERVE_MOST)
			return -ETIMEDOUT;
		s->on_disk++;
		me->on_disk = true;
	}
	me->ticket = park_hold(fs->park, me->req, fuse_session_fd(s->se), me->unique);
	pthread_mutex_unlock(&s->session);
	return 0;
}

int serve_disk_end(struct fs *fs)
{
	struct server *me = server_here;
	struct serve *s = fs->serve;
	int err;

	if (!me)
		return 0;
	pthread_mutex_lock(&s->session);
	err = park_claim(fs->park, me->ticket) ? 0 : -EINTR;
	lock_scope(&s->lock);
	s->on_disk--;
	me->on_disk = false;
	return err;
}

/* Called on park's thread. */
static void serve_stalled(void *data)
{
	server_start(data);
}

void serve_begin_request(fuse_req_t req)
{
	if (server_here)
		server_here->req = req;
}

char *serve_buffer(size_t size)
{
	struct server *me = server_here;

	if (size > me->buffer_size) {
		me->buffer = mem_grow(me->buffer, size, 1);
		me->buffer_size = size;
	}
	return me->buffer;
}

/* --- start and end --- */

int serve_run(struct serve *s, struct fuse_session *se)
{
	int err;

	s->se = se;
	park_when_held(s->fs->park, serve_stalled, s);
	err = server_start(s);
	if (err)
		return err;
	lock_scope(&s->lock);
	while (!fuse_session_exited(se) || s->n > s->on_disk)
		pthread_cond_wait(&s->ended, &s->lock.mutex);
	return s->err;
}

void serve_finish(struct serve *s)
{
	lock_scope(&s->lock);
	while (s->n > 0)
		pthread_cond_wait(&s->ended, &s->lock.mutex);
}

void serve_wake(struct serve *s)
{
	struct server *server;

	lock_scope(&s->lock);
	DL_FOREACH(s->servers, server)
		if (!server->on_disk)
			pthread_kill(server->thread, SIGUSR1);
	pthread_cond_signal(&s->ended);
}
