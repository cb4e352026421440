/* SPDX-License-Identifier: MIT */
/*
 * The file `follow` (see job.h). The pool reads the log one step at a time, so a log on a hanging
 * disk delays only its own readers.
 *
 *	state | phase                                    | ends when                     | next
 *	RESTS | the reader gets bytes, or waits for more | the reader needs the next log | OPENS
 *	      |                                          | the next bytes are on disk    | READS
 *	OPENS | the pool opens the next log, and reads   | done, or failed               | RESTS
 *	READS | the pool reads the next bytes            | done, or failed               | RESTS
 *
 * An event only means that something has changed. To answer a reader, follow checks the log
 * (log_peek) and the job again, so it misses no change while the pool works. A log is finished when
 * log_peek reports the end, and the reader has all bytes up to it.
 */
#include "fs/tree/job.h"

#include <errno.h>

#include "backend/base/work.h"
#include "spec/base/mem.h"

/* the most bytes that the pool reads in one step */
#define FOLLOW_STEP (256u << 10)

enum follow_state { FOLLOW_RESTS, FOLLOW_OPENS, FOLLOW_READS };

struct tail_follow {
	struct stream stream;
	struct backend *backend;
	char *uid;
	char *replica; /* "" for the follow of a job */
	enum follow_state state;
	/* key of the last opened log; NULL before the first open, and for the merged log */
	char *key;
	/* offset in `follow` at which the log starts; in OPENS, at which the next log starts */
	uint64_t base;

	/* In OPENS and READS, the pool owns the members below. */
	struct work work;
	const struct spec_job *job; /* OPENS: the job of the next log */
	const char *next;	    /* OPENS: the key of the next log */
	struct log *log;
	struct log_stat st; /* status of LOG at the last step */
	/* the last step read N bytes at offset AT of LOG into BYTES */
	uint64_t at;
	size_t n;
	char *bytes;
};

static struct tail_follow *follow_of(struct stream *s)
{
	return container_of(s, struct tail_follow, stream);
}

/* --- on the pool --- */

/* Read LOG's status, and up to FOLLOW_STEP bytes at f->at. */
static int follow_step(struct tail_follow *f)
{
	ssize_t got;
	int err = log_stat(f->log, &f->st);

	if (err || f->at >= f->st.size)
		return err;
	f->n = (size_t)min_of(f->st.size - f->at, (uint64_t)FOLLOW_STEP);
	f->bytes = mem_grow(f->bytes, f->n, 1);
	got = log_read(f->log, f->bytes, f->n, f->at);
	f->n = (size_t)max_of(got, (ssize_t)0);
	/* 0 means that the log was truncated since log_stat */
	return got < 0 ? (int)got : got == 0 ? -ENODATA : 0;
}

static void follow_work(void *data)
{
	struct tail_follow *f = data;
	int err = 0;

	if (f->state == FOLLOW_OPENS) {
		log_unref(take_ptr(f->log));
		err = backend_log(f->backend, f->job, f->next, LOG_PLAIN, &f->log);
	}
	f->work.err = err ? err : follow_step(f);
}

static void unref_work(void *data)
{
	log_unref(data);
}

/* --- on the I/O thread --- */

static void follow_done(void *data)
{
	struct tail_follow *f = data;

	if (f->state == FOLLOW_OPENS && f->log) {
		free(f->key);
		f->key = f->next ? text_copy(f->next) : NULL;
	}
	spec_job_unref(take_ptr(f->job));
	f->state = FOLLOW_RESTS;
	stream_unhold(&f->stream);
}

/* Enter STATE: let the pool read at the offset AT of the log. */
static int follow_begin(struct tail_follow *f, enum follow_state state, uint64_t at)
{
	f->state = state;
	f->at = at;
	f->n = 0;
	f->work = (struct work){.run = follow_work, .done = follow_done, .data = f};
	stream_hold(&f->stream);
	work_start(&f->work, f->stream.fs->loop);
	return -EINPROGRESS;
}

/*
 * Return the key of the log of R's main container that follows the log KEY. If KEY is NULL, return
 * the key of its first log. Return NULL if there is no such log yet. Set *LAST to true if R gets no
 * more attempts.
 */
static const char *follow_next_key(const struct spec_replica *r, const char *key, bool *last)
{
	bool passed = !key;

	*last = r->finished != 0;
	for (size_t i = 0; i < r->n_logs; i++) {
		if (*r->logs[i].container)
			continue;
		if (passed)
			return r->logs[i].key;
		passed = streq(r->logs[i].key, key);
	}
	return NULL;
}

/*
 * True if the log KEY (NULL for any log) may still grow because JOB's state is stale: the cluster
 * has not confirmed it since the mount began, or since the connection broke.
 */
static bool may_grow(const struct spec_job *job, const char *key)
{
	for (size_t i = 0; i < job->n_replicas && job->stale_since && !job->history; i++)
		for (size_t k = 0; k < job->replicas[i].n_logs; k++) {
			const struct spec_log *l = &job->replicas[i].logs[k];

			if (!l->complete && !l->lost_end && (!key || streq(l->key, key)))
				return true;
		}
	return false;
}

/*
 * Start to open the next log, after the reader got all SIZE bytes of the current one. Return
 * -EINPROGRESS, or -EAGAIN if the next log does not exist yet, or 0 if there will be none.
 */
static int follow_switch(struct tail_follow *f, uint64_t size)
{
	const struct spec_job *job cleanup_job = backend_job_by_uid(f->backend, f->uid);
	const struct spec_replica *r;
	const char *key = NULL;
	bool last;

	if (!job || job->dropped)
		return 0;
	if (job->held)
		return spec_job_has_ended(job) ? 0 : -EAGAIN;
	if (f->log && may_grow(job, f->key))
		return -EAGAIN;
	if (*f->replica) {
		r = spec_job_replica(job, f->replica);
		key = r ? follow_next_key(r, f->key, &last) : NULL;
		if (!key)
			/* 0 if R is gone or gets no more attempts, or in history/ */
			return !r || last || job->history ? 0 : -EAGAIN;
	} else if (f->log) {
		/* an empty merged log counts as ended, but its job may still print output */
		return job->history || spec_job_is_over(job) ? 0 : -EAGAIN;
	}
	f->base += size;
	f->st = (struct log_stat){0};
	f->job = take_ptr(job);
	f->next = key;
	return follow_begin(f, FOLLOW_OPENS, 0);
}

static ssize_t follow_read(struct stream *s, const char **ret, size_t size, uint64_t off)
{
	struct tail_follow *f = follow_of(s);
	uint64_t at = off - f->base;
	struct log_stat st;
	int err;

	if (off < f->base)
		return -ESPIPE;
	if (f->state != FOLLOW_RESTS)
		return -EINPROGRESS;
	if (at >= f->at && at - f->at < f->n) {
		if (ret)
			*ret = f->bytes + (at - f->at);
		return (ssize_t)min_of((uint64_t)size, f->at + f->n - at);
	}
	/* Return an error only once, so that the reader can retry. */
	err = f->work.err;
	f->work.err = 0;
	if (err)
		return err == -ENODATA ? 0 : err;
	if (!f->log)
		return follow_switch(f, 0);
	if (log_is_denied(f->log))
		return -EACCES;
	log_peek(f->log, &st);
	if (at < max_of(st.size, f->st.size) || (st.ended && !f->st.ended))
		return follow_begin(f, FOLLOW_READS, at);
	free(take_ptr(f->bytes));
	f->n = 0;
	if (log_is_cut(f->log))
		return -ESTALE;
	return st.ended ? follow_switch(f, f->st.size) : -EAGAIN;
}

static void follow_stop(struct stream *s)
{
	struct tail_follow *f = follow_of(s);
	struct loop *loop = s->fs->loop;

	/* Closing may wait for the disk, so use the pool, unless the mount has ended the pool. */
	if (f->log && loop_is_here(loop))
		loop_work(loop, unref_work, NULL, f->log);
	else
		log_unref(f->log);
	free(f->bytes);
	free(f->key);
	free(f->uid);
	free(f->replica);
}

static const struct stream_class follow_stream = {
	.size = sizeof(struct tail_follow),
	.read = follow_read,
	.stop = follow_stop,
};

bool follow_is_of(const struct stream *s, const struct spec_job *job)
{
	return s->class == &follow_stream &&
	       job_ref_is_of(container_of(s, const struct tail_follow, stream)->uid, job);
}

bool follow_reads(const struct stream *s, const struct log *log)
{
	const struct tail_follow *f = container_of(s, const struct tail_follow, stream);

	return s->class == &follow_stream && f->state != FOLLOW_OPENS && f->log == log;
}

/* --- FUSE thread --- */

static void follow_open(struct fs *fs, fuse_req_t req, struct node *node, struct fuse_file_info *fi)
{
	const struct job_ref *p = job_ref_of(node);
	struct tail_follow *f;

	if (job_ref_state_is_gone(p->tree)) {
		fuse_reply_err(req, EIO);
		return;
	}
	f = follow_of(stream_new(fs, &follow_stream));
	f->backend = p->tree->backend;
	f->uid = text_copy(p->uid);
	f->replica = text_copy(p->replica ? p->replica : "");
	stream_open(&f->stream, req, fi);
}

const struct node_class follow_class = {
	.name = "follow",
	.mode = S_IFREG | 0644,
	.getattr = job_ref_getattr,
	.open = follow_open,
	STREAM_OPS,
};
