/* SPDX-License-Identifier: MIT */
/*
 * Read-ahead: see ahead.h. The bytes between BEGIN and END of the log are in a ring buffer. The
 * FUSE thread answers from these, and moves BEGIN; one work on the pool appends the next bytes at
 * END, and moves END. Neither touches the other's bytes, so they are copied without the lock.
 *
 *	fill    | phase                          | ends when                                    | next
 *	NONE    | nothing                        | a reader finds free space in the ring        | WANTED
 *	WANTED  | the work is queued on the pool | a thread takes it                            | READING
 *	READING | a thread reads step after step | the ring is full, or the log has no more now | NONE
 *	        |                                | after some steps, if other work is due       | WANTED
 */
#include "fs/tree/ahead.h"

#include <sys/mman.h>

#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "fs/tree/tree.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"

/* Bytes of a ring; a power of two, so that an offset in the log determines one in the ring. */
#define AHEAD_RING  (4u << 20)
#define AHEAD_STEP  (256u << 10) /* bytes read in one step */
#define AHEAD_STEPS 32		 /* number of steps before other work of the pool is served */
#define AHEAD_AFTER (256u << 10) /* start the read-ahead after this many sequential bytes */
#define AHEAD_MAX   8		 /* files that have a ring at a time */

enum fill { FILL_NONE, FILL_WANTED, FILL_READING };

struct ahead {
	struct tree *tree;
	struct log *log;
	/* FUSE thread: */
	uint64_t next; /* end of the last read */
	uint64_t run;  /* sequential bytes read before that */

	char *ring; /* NULL if there is no ring; owned by the FUSE thread while no work is in
		     * progress */
	struct lock lock;
	pthread_cond_t step; /* a step has ended */
	/* Under the lock: */
	unsigned refs; /* one for the open file, and one for each work on the pool */
	uint64_t begin, end;
	enum fill fill;
	bool closed;
};

struct ahead *ahead_new(struct tree *t, struct log *log)
{
	struct ahead *a = new0(struct ahead);

	a->tree = t;
	a->log = log;
	a->lock = (struct lock)LOCK_INIT;
	a->refs = 1;
	pthread_cond_init(&a->step, NULL);
	return a;
}

struct log *ahead_log(const struct ahead *a)
{
	return a->log;
}

static void ahead_drop_ring(struct ahead *a)
{
	if (a->ring)
		atomic_fetch_sub(&a->tree->aheads, 1);
	free(take_ptr(a->ring));
}

static void ahead_unref(void *data)
{
	struct ahead *a = data;

	{
		lock_scope(&a->lock);
		if (--a->refs > 0)
			return;
	}
	ahead_drop_ring(a);
	log_unref(a->log);
	pthread_cond_destroy(&a->step);
	free(a);
}

void ahead_close(struct ahead *a)
{
	if (!a)
		return;
	{
		lock_scope(&a->lock);
		a->closed = true;
	}
	ahead_unref(a);
}

/* --- on the pool --- */

/* True if the next step may be read; set its offset and its size. */
static bool ahead_take_step(struct ahead *a, uint64_t *ret_at, size_t *ret_n)
{
	uint64_t room;

	lock_scope(&a->lock);
	room = AHEAD_RING - (a->end - a->begin);
	if (a->closed || room < AHEAD_STEP) {
		a->fill = FILL_NONE;
		return false;
	}
	a->fill = FILL_READING;
	*ret_at = a->end;
	*ret_n = min_of((size_t)AHEAD_STEP, (size_t)(AHEAD_RING - a->end % AHEAD_RING));
	return true;
}

/*
 * End a step that has read GOT bytes of N. A reader that waits for an unreadable byte gets the
 * error. The next state is NEXT, unless the log has no more now.
 */
static bool ahead_end_step(struct ahead *a, size_t n, ssize_t got, enum fill next)
{
	lock_scope(&a->lock);
	a->end += (uint64_t)max_of(got, (ssize_t)0);
	a->fill = got < (ssize_t)n ? FILL_NONE : next;
	if (a->fill == FILL_WANTED)
		a->refs++;
	pthread_cond_broadcast(&a->step);
	return a->fill != FILL_NONE;
}

static void ahead_post(struct ahead *a);

static void ahead_fill(void *data)
{
	struct ahead *a = data;
	unsigned left = AHEAD_STEPS;
	uint64_t at;
	bool more;
	size_t n;

	do {
		more = ahead_take_step(a, &at, &n);
		if (more) {
			ssize_t got = log_read(a->log, a->ring + at % AHEAD_RING, n, at);

			more = ahead_end_step(a, n, got, --left > 0 ? FILL_READING : FILL_WANTED);
		}
	} while (more && left > 0);
	if (more)
		ahead_post(a);
	/* Release it on the pool, because closing the log may wait for the disk. */
	ahead_unref(a);
}

static void ahead_on_post(void *data)
{
	struct ahead *a = data;

	loop_work(a->tree->fs->loop, ahead_fill, NULL, a);
}

/* Queue the filling of A, which is WANTED, on the pool; the work has a reference. */
static void ahead_post(struct ahead *a)
{
	loop_post(a->tree->fs->loop, ahead_on_post, a);
}

/* --- requests --- */

/* Start filling A's ring, if it has space and no work is in progress. */
static void ahead_want(struct ahead *a)
{
	{
		lock_scope(&a->lock);
		if (a->fill != FILL_NONE || AHEAD_RING - (a->end - a->begin) < AHEAD_STEP)
			return;
		a->fill = FILL_WANTED;
		a->refs++;
	}
	ahead_post(a);
}

/*
 * True if the SIZE bytes at OFF are in the ring. Wait for bytes that a thread is reading. Don't
 * wait for bytes that no thread has begun to read, since all threads may be waiting for a slow
 * disk: make the ring continue after those bytes.
 */
static bool ahead_has(struct ahead *a, size_t size, uint64_t off)
{
	while (a->ring) {
		{
			lock_scope(&a->lock);
			if (off < a->begin || off > a->end)
				return false;
			if (off + size <= a->end)
				return true;
			if (a->fill == FILL_WANTED)
				a->begin = a->end = off + size;
			if (a->fill != FILL_READING)
				return false;
			a->begin = off;
		}
		if (serve_disk_begin(a->tree->fs))
			return false;
		{
			uint64_t end;

			lock_scope(&a->lock);
			end = a->end;
			while (a->fill == FILL_READING && a->end == end && end < off + size)
				pthread_cond_wait(&a->step, &a->lock.mutex);
		}
		serve_disk_end(a->tree->fs);
	}
	return false;
}

/* Free the ring at the end of the log, if nothing is expected soon. */
static void ahead_rest(struct ahead *a)
{
	{
		lock_scope(&a->lock);
		if (a->fill != FILL_NONE)
			return;
		a->begin = a->end = 0;
	}
	ahead_drop_ring(a);
}

/*
 * Handle a direct read of SIZE bytes before AT: after many sequential bytes, make a ring for the
 * following ones.
 */
static void ahead_begin(struct ahead *a, uint64_t at)
{
	if (!a->ring) {
		if (atomic_fetch_add(&a->tree->aheads, 1) < AHEAD_MAX)
			a->ring = aligned_alloc(AHEAD_RING, AHEAD_RING);
		if (!a->ring) {
			atomic_fetch_sub(&a->tree->aheads, 1);
			return;
		}
		/* Use a large page, if there is one, from which the kernel copies faster. */
		madvise(a->ring, AHEAD_RING, MADV_HUGEPAGE);
	}
	{
		lock_scope(&a->lock);
		if (a->fill != FILL_NONE)
			return;
		if (at < a->begin || at > a->end)
			a->begin = a->end = at;
	}
	ahead_want(a);
}

void ahead_read(struct ahead *a, fuse_req_t req, size_t size, uint64_t off)
{
	char *buf;
	ssize_t n;

	a->run = off == a->next ? a->run + size : size;
	a->next = off + size;
	if (ahead_has(a, size, off)) {
		size_t at = off % AHEAD_RING, first = min_of(size, AHEAD_RING - at);
		struct iovec parts[] = {{a->ring + at, first}, {a->ring, size - first}};

		ahead_want(a);
		fuse_reply_iov(req, parts, first < size ? 2 : 1);
		lock_scope(&a->lock);
		a->begin = off + size;
		return;
	}
	buf = serve_buffer(size);
	n = serve_disk_begin(a->tree->fs);
	if (n == 0) {
		n = log_read(a->log, buf, size, off);
		serve_disk_end(a->tree->fs);
	}
	if (n == (ssize_t)size && a->run >= AHEAD_AFTER)
		ahead_begin(a, a->next);
	else if (n < (ssize_t)size && a->ring)
		ahead_rest(a);
	if (n < 0)
		fuse_reply_err(req, (int)-n);
	else
		fuse_reply_buf(req, buf, (size_t)n);
}
