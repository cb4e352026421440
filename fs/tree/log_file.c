/* SPDX-License-Identifier: MIT */
/*
 * The files of logs: `log` is the output as it was printed, `stamped` has timestamps. The size is
 * exact, and a read at the end returns 0 bytes. An open waits until all output so far has arrived.
 * The open fails with EACCES if the cluster does not allow the user to read the log.
 *
 * Read-ahead: for a sequential reader, the pool reads or renders the next bytes into a ring buffer,
 * while the kernel copies the previous ones. Output never changes, so buffered bytes remain valid.
 * The ring has the bytes of the log from BEGIN to END. The FUSE thread answers from the ring and
 * advances BEGIN; a work item on the pool appends bytes and advances END. Neither touches the
 * other's bytes, so both copy without the lock. If the pool is not reading the requested bytes yet,
 * the FUSE thread reads them itself instead of waiting.
 *
 *	fill    | phase                          | ends when                            | next
 *	NONE    | the pool has no work           | a reader finds space in the ring     | WANTED
 *	WANTED  | the work is queued on the pool | a thread takes it                    | READING
 *	READING | a thread reads step after step | the ring is full, or no byte is left | NONE
 *	        |                                | AHEAD_STEPS steps are done           | WANTED
 */
#include <errno.h>
#include <sys/mman.h>

#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "backend/output/log.h"
#include "fs/tree/job.h"
#include "fs/vfs/handle.h"
#include "fs/vfs/park.h"
#include "fs/vfs/serve.h"
#include "spec/base/mem.h"

/* how long an open may wait for output, in ms */
#define LOG_OPEN_MS 10000
/* the st_blksize of a log: cat, cp and others request as much per read */
#define LOG_READ (1 << 20)

/* --- read-ahead --- */

/* A power of two: the offset in the ring is the offset in the log modulo this size. */
#define AHEAD_RING  (4u << 20)
#define AHEAD_STEP  (256u << 10) /* bytes per step */
#define AHEAD_STEPS 32		 /* steps until the thread yields to other work */
#define AHEAD_AFTER (256u << 10) /* start after this many sequential bytes */
#define AHEAD_MAX   8		 /* the most rings at the same time */

enum fill { FILL_NONE, FILL_WANTED, FILL_READING };

struct ahead {
	struct tree *tree;
	struct log *log;
	/* FUSE thread: */
	uint64_t next; /* end of the last read */
	uint64_t run;  /* bytes read sequentially up to NEXT */

	/* the ring, or NULL; the FUSE thread sets it, and only in FILL_NONE */
	char *ring;
	struct lock lock;
	pthread_cond_t step;
	/* Under the lock: */
	unsigned refs; /* one for the open file, one for each work item */
	uint64_t begin, end;
	enum fill fill;
	bool closed;
};

/* Make the reader of LOG for an open file. Take ownership of the reference to LOG. FUSE thread. */
static struct ahead *ahead_new(struct tree *t, struct log *log)
{
	struct ahead *a = new0(struct ahead);

	a->tree = t;
	a->log = log;
	a->lock = (struct lock)LOCK_INIT;
	a->refs = 1;
	pthread_cond_init(&a->step, NULL);
	return a;
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

/* Close A, which may be NULL. If the pool is reading for A now, the pool frees A after the step. */
static void ahead_close(struct ahead *a)
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

/* If the ring has space for a step, return true with the step's offset and size. */
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
 * End a step that requested N bytes and got GOT. If GOT is N, enter NEXT and return true. Otherwise
 * enter FILL_NONE and return false: the log has no more bytes now, or GOT is an error. The reader
 * gets this error from its own read.
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
	/* Unref on the pool, because closing the log may wait for the disk. */
	ahead_unref(a);
}

static void ahead_on_post(void *data)
{
	struct ahead *a = data;

	loop_work(a->tree->fs->loop, ahead_fill, NULL, a);
}

/* The caller has set FILL_WANTED, and counted a reference for the work item. */
static void ahead_post(struct ahead *a)
{
	loop_post(a->tree->fs->loop, ahead_on_post, a);
}

/* --- requests --- */

/* Let the pool fill A's ring, unless the ring is full or already being filled. */
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
 * True if the ring has the SIZE bytes at OFF. If a thread is reading them now, wait. If the work is
 * only queued, return false, because all threads of the pool may be waiting for a slow disk. The
 * caller then reads these bytes itself, so let the work begin after them.
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

/* At the end of the log, free the ring, unless the pool is filling it. */
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

/* After a long sequential read up to AT, fill the ring from AT on. */
static void ahead_begin(struct ahead *a, uint64_t at)
{
	if (!a->ring) {
		if (atomic_fetch_add(&a->tree->aheads, 1) < AHEAD_MAX)
			a->ring = aligned_alloc(AHEAD_RING, AHEAD_RING);
		if (!a->ring) {
			atomic_fetch_sub(&a->tree->aheads, 1);
			return;
		}
		/* the kernel copies faster from a huge page */
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

static void ahead_read(struct ahead *a, fuse_req_t req, size_t size, uint64_t off)
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

/* --- the file --- */

struct log_node {
	struct node node;
	bool merged;
	enum log_form form;
	/* NULL for the merged log, and for a first log that has not begun */
	char *key;
};

struct log_handle {
	struct handle handle;
	struct ahead *ahead; /* NULL until the log has begun */
};

static void log_handle_free(struct handle *h)
{
	struct log_handle *lh = container_of(h, struct log_handle, handle);

	ahead_close(lh->ahead);
	free(lh);
}

/* True if LN's log has begun, and its output was not dropped. If LN has no key yet, set it. */
static bool log_file_begun(struct log_node *ln, const struct spec_job *job)
{
	const struct spec_replica *r;

	if (job->dropped)
		return false;
	if (ln->merged || ln->key)
		return true;
	r = job_ref_replica(&ln->node, job);
	if (!r || r->n_logs == 0 || *r->logs[0].container)
		return false;
	ln->key = text_copy(r->logs[0].key);
	return true;
}

/* Open NODE's log, and set *RET to its reader. If the log has not begun, don't change *RET. */
static int log_file_find(struct node *node, struct ahead **ret)
{
	struct log_node *ln = container_of(node, struct log_node, node);
	const struct spec_job *job cleanup_job = job_ref_job(node);
	struct tree *t = job_ref_of(node)->tree;
	struct log *log;
	int err;

	if (!job)
		return -ENOENT;
	if (!log_file_begun(ln, job))
		return 0;
	err = serve_disk_begin(t->fs);
	if (err)
		return err;
	err = backend_log(t->backend, job, ln->key, ln->form, &log);
	serve_disk_end(t->fs);
	if (err)
		return err;
	if (*ret) /* another read of the same open file was faster */
		log_unref(log);
	else
		*ret = ahead_new(t, log);
	return 0;
}

/* Succeed even if the log can't be read, so that `rm -r` works. An open returns the error. */
static int log_file_getattr(struct fs *fs, struct node *node, struct stat *st)
{
	struct log_node *ln = container_of(node, struct log_node, node);
	const struct spec_job *job cleanup_job = job_ref_job(node);
	struct log_stat ls = {0};

	if (!job)
		return -ENOENT;
	if (log_file_begun(ln, job)) {
		int err = serve_disk_begin(fs);

		if (err)
			return err;
		if (backend_log_stat(job_ref_of(node)->tree->backend, job, ln->key, ln->form, &ls))
			ls = (struct log_stat){0};
		serve_disk_end(fs);
	}
	node_set_times(st, ls.mtime ? ls.mtime : job->created, job->created);
	st->st_size = (off_t)ls.size;
	st->st_blksize = LOG_READ;
	return 0;
}

struct log_open {
	struct fs *fs;
	uint64_t ticket;
	struct fuse_file_info fi;
};

static void log_file_arrived(void *data)
{
	struct log_open *o = data;
	const struct log_handle *lh = handle_of(&o->fi);
	int err = log_is_denied(lh->ahead->log) ? EACCES : 0;
	fuse_req_t req = park_claim(o->fs->park, o->ticket);

	if (req && err)
		fuse_reply_err(req, err);
	/* If the open was refused, interrupted or timed out, free the handle. */
	if (req && !err)
		handle_reply(o->fs, req, &o->fi);
	else
		handle_close(o->fs, &o->fi);
	free(o);
}

static void log_file_open(struct fs *fs, fuse_req_t req, struct node *node,
			  struct fuse_file_info *fi)
{
	struct log_handle *lh = new0(struct log_handle);
	struct log_open *o;
	int err = job_ref_state_is_gone(job_ref_of(node)->tree) ? -EIO
								: log_file_find(node, &lh->ahead);

	if (err) {
		free(lh);
		fuse_reply_err(req, -err);
		return;
	}
	handle_open(fs, &lh->handle, log_handle_free, fi);
	if (!lh->ahead || log_has_arrived(lh->ahead->log)) {
		handle_reply(fs, req, fi);
		return;
	}
	o = new0(struct log_open);
	o->fs = fs;
	o->fi = *fi;
	o->ticket = park_add(fs->park, req, PARK_OPEN, LOG_OPEN_MS);
	log_when_arrived(lh->ahead->log, log_file_arrived, o);
}

static void log_file_read(struct fs *fs, fuse_req_t req, struct node *node, size_t size, off_t off,
			  struct fuse_file_info *fi)
{
	struct log_handle *lh = handle_of(fi);
	int err = 0;

	/* the log may have begun after the open */
	if (!lh->ahead)
		err = log_file_find(node, &lh->ahead);
	if (!err && lh->ahead && log_is_denied(lh->ahead->log))
		err = -EACCES;
	if (err)
		fuse_reply_err(req, -err);
	else if (!lh->ahead)
		fuse_reply_buf(req, NULL, 0);
	else
		ahead_read(lh->ahead, req, size, (uint64_t)off);
}

static void log_node_free(struct node *node)
{
	free(container_of(node, struct log_node, node)->key);
}

static const struct node_class log_file_class = {
	.name = "log",
	.mode = S_IFREG | 0644,
	.size = sizeof(struct log_node),
	.live = true,
	.costly = true,
	.on_disk = true,
	.getattr = log_file_getattr,
	.open = log_file_open,
	.read = log_file_read,
	.free = log_node_free,
};

static struct node *log_node_new(struct fs *fs, struct node *dir, const char *tag, const char *key,
				 bool merged, enum log_form form)
{
	bool fresh;
	struct node *node = node_get(fs, dir, &log_file_class, tag, &fresh);
	struct log_node *ln = container_of(node, struct log_node, node);

	/* in an existing node, a handler that waits for a disk may be using these members */
	if (fresh) {
		ln->merged = merged;
		ln->form = form;
	}
	if (key && !ln->key)
		ln->key = text_copy(key);
	return node;
}

struct node *log_node_merged(struct fs *fs, struct node *dir, enum log_form form)
{
	return log_node_new(fs, dir, form == LOG_PLAIN ? "log@" : "stamped@", NULL, true, form);
}

struct node *log_node_get(struct fs *fs, struct node *dir, const char *name, const char *key,
			  bool first, enum log_form form)
{
	char *tag cleanup_free = NULL;

	if (first)
		return log_node_new(fs, dir, form == LOG_PLAIN ? "log@first" : "stamped@first", key,
				    false, form);
	/*
	 * The tag contains the key, so `log` is a new file at each attempt, and the inode of an
	 * older attempt does not change.
	 */
	tag = text_print("%s@%s", name, key);
	return log_node_new(fs, dir, tag, key, false, form);
}
