/* SPDX-License-Identifier: MIT */
/*
 * The merged index as it grows. Logs that may have grown stand in a queue; a turn of the loop takes a
 * bounded number of bytes of them, cuts these into records and has them written, so that a program which
 * prints faster than anybody reads costs the loop a slice a turn. What fails is tried again every
 * second. Also here: who waits for the index to catch up, and its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/diag.h"
#include "backend/spool_impl.h"

#define PUMP_READ     SPOOL_BUFFER /* bytes of a log looked at in one step */
#define PUMP_TURN     (1u << 20)   /* bytes in one turn of the loop */
#define PUMP_STEPS    256	   /* steps in one turn */
#define PUMP_RETRY_MS 1000

static void pump_on_retry(void *data);

void spool_pump_later(struct spool_job *j, int err)
{
	struct spool *spool = j->spool;

	if (!j->said_stuck)
		diag(DIAG_ERROR, "%s: its merged log can't be made: %s; trying again every second",
		     j->id, strerror(-err));
	j->said_stuck = true;
	if (!spool->retry && !spool->stopped)
		spool->retry = loop_timer_new(spool->loop, PUMP_RETRY_MS, 0, pump_on_retry, spool);
}

/* --- those who wait for it --- */

static bool pump_is_settled(const struct spool_job *j, const struct spool_settle *w)
{
	if (j->n_out > 0)
		return false;
	for (size_t i = 0; i < w->n; i++) {
		const struct spool_source *s = j->by_number[i];

		if (s->live && s->seen < w->targets[i])
			return false;
	}
	return true;
}

static void pump_settle_done(struct spool_settle *w)
{
	w->fn(w->data);
	log_unref(w->log);
	free(w->targets);
	free(w);
}

static void pump_check_settles(struct spool_job *j, bool all)
{
	struct spool_settle *w, *next, *done = NULL;

	LL_FOREACH_SAFE(j->settles, w, next)
	{
		if (all || pump_is_settled(j, w)) {
			LL_DELETE(j->settles, w);
			LL_APPEND(done, w);
		}
	}
	LL_FOREACH_SAFE(done, w, next)
	{
		pump_settle_done(w);
	}
}

void spool_pump_release(struct spool_job *j)
{
	pump_check_settles(j, true);
}

void spool_pump_settle(struct spool_job *j, struct spool_settle *w)
{
	w->targets = calloc(j->keys.n + 1, sizeof(*w->targets));
	if (!w->targets) {
		pump_settle_done(w);
		return;
	}
	w->n = j->keys.n;
	for (size_t i = 0; i < w->n; i++) {
		struct spool_source *s = j->by_number[i];
		char path[SPOOL_PATH_MAX];
		struct stat st;

		if (!s->live || !spool_name(path, j->id, "logs", s->key) ||
		    fstatat(j->spool->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		w->targets[i] = (uint64_t)st.st_size;
		if (s->seen < w->targets[i])
			spool_pump_queue(s);
	}
	LL_APPEND(j->settles, w);
	pump_check_settles(j, false);
}

/* --- the end --- */

/* For readers and for who asked, S has ended. */
static void pump_source_ended(struct spool_source *s)
{
	loop_fn fn = s->fn;
	struct log *log = NULL;
	bool news;

	{
		lock_scope(&s->job->spool->lock);
		news = !s->ended;
		s->ended = true;
		if (s->log) {
			log = s->log;
			log->refs++;
			atomic_store(&log->ended, true);
		}
	}
	if (news)
		log_tell(log);
	else
		log_unref(log);
	s->fn = NULL;
	if (fn)
		fn(s->data);
}

void spool_pump_end(struct spool_job *j)
{
	struct merge_record r;

	if (j->n_live > 0 || j->n_out > 0)
		return;
	spool_unwatch_job(j);
	if (j->end_asked && !j->ended) {
		if (j->has_last && !(j->last.flags & MERGE_ENDS)) {
			r = j->last;
			r.offset = j->keys.v[r.log].indexed;
			r.length = 0;
			r.flags = MERGE_NEWLINE | MERGE_ENDS;
			r.end++;
			spool_index_append(j, &r);
			if (spool_index_flush(j) < 0)
				return;
		}
		spool_index_publish(j, true);
	}
	pump_check_settles(j, false);
	if (j->closed && !j->busy)
		spool_job_free(j);
}

/* --- the queue --- */

static void pump_turn(void *data);

static void pump_wake(struct spool *spool)
{
	if (spool->pumping || spool->stopped)
		return;
	spool->pumping = true;
	loop_post(spool->loop, pump_turn, spool);
}

void spool_pump_queue(struct spool_source *s)
{
	struct spool *spool = s->job->spool;

	if (!s->live || s->queued)
		return;
	s->queued = true;
	s->stuck = false;
	DL_APPEND(spool->queue, s);
	pump_wake(spool);
}

static void pump_on_retry(void *data)
{
	struct spool *spool = data;
	struct spool_job *j, *next;

	loop_timer_free(take_ptr(spool->retry));
	HASH_ITER(hh, spool->jobs, j, next) {
		for (size_t i = 0; i < j->keys.n; i++) {
			if (j->by_number[i]->stuck)
				spool_pump_queue(j->by_number[i]);
		}
		if (j->n_live == 0 && spool_index_flush(j) == 0)
			spool_pump_end(j);
	}
}

/* S can't go on now. Who waits for its end need not wait for the disk. */
static void pump_stuck(struct spool_source *s)
{
	s->stuck = true;
	pump_check_settles(s->job, true);
	if (s->ending)
		pump_source_ended(s);
}

/* Up to PUMP_READ bytes of S that are not in the index, into spool.buf. */
static ssize_t pump_read(struct spool_source *s)
{
	struct spool_job *j = s->job;
	char path[SPOOL_PATH_MAX];
	cleanup_fd int fd = -1;
	ssize_t n;

	if (!spool_name(path, j->id, "logs", s->key))
		return -ENAMETOOLONG;
	fd = openat(j->spool->dir_fd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	n = pread(fd, j->spool->buf, PUMP_READ, (off_t)j->keys.v[s->number].indexed);
	return n < 0 ? -errno : n;
}

/* N bytes at BUF are in the index. */
static void pump_count(struct spool *spool, const char *buf, size_t n)
{
	const char *end = buf + n;
	uint64_t lines = 0;

	for (const char *at = buf; (at = memchr(at, '\n', (size_t)(end - at))); at++)
		lines++;
	atomic_fetch_add_explicit(&spool->captured_bytes, n, memory_order_relaxed);
	atomic_fetch_add_explicit(&spool->captured_lines, lines, memory_order_relaxed);
}

/* Make records of the N bytes in spool.buf. */
static void pump_cut(struct spool_source *s, size_t n, bool final)
{
	struct spool_job *j = s->job;
	struct merge_key *k = &j->keys.v[s->number];
	const char *buf = j->spool->buf;
	size_t at = 0;

	for (;;) {
		size_t length = merge_cut(buf + at, n - at, final);
		struct merge_record r;

		if (length == 0)
			break;
		r = merge_next(j->has_last ? &j->last : NULL, s->number, k->indexed, buf + at,
			       length, strlen(k->prefix));
		spool_index_append(j, &r);
		k->indexed += length;
		at += length;
	}
	pump_count(j->spool, buf, at);
}

static void pump_seen(struct spool_source *s, uint64_t seen)
{
	struct spool *spool = s->job->spool;
	struct log *log;

	if (seen > s->counted) {
		atomic_fetch_add(&spool->bytes, (long long)(seen - s->counted));
		s->counted = seen;
	}
	if (seen <= s->seen)
		return;
	s->seen = seen;
	{
		lock_scope(&spool->lock);
		log = s->log;
		if (log)
			log->refs++;
	}
	log_tell(log);
}

/* One step of S, which is not in the queue. Returns the bytes that it looked at. */
static size_t pump_step(struct spool_source *s)
{
	struct spool_job *j = s->job;
	bool ending = s->ending;
	uint64_t from = j->keys.v[s->number].indexed;
	ssize_t n;

	if (spool_index_flush(j) < 0) {
		pump_stuck(s);
		return 0;
	}
	n = pump_read(s);
	if (n < 0) {
		spool_pump_later(j, (int)n);
		pump_stuck(s);
		return 0;
	}
	pump_cut(s, (size_t)n, ending && n < PUMP_READ);
	pump_seen(s, from + (uint64_t)n);
	if (spool_index_flush(j) < 0) {
		pump_stuck(s);
		return (size_t)n;
	}
	pump_check_settles(j, false);
	if (n == PUMP_READ) {
		spool_pump_queue(s);
	} else if (ending) {
		s->live = false;
		j->n_live--;
		pump_source_ended(s);
	}
	return (size_t)n;
}

static void pump_run(struct spool *spool)
{
	size_t bytes = 0;

	for (unsigned i = 0; spool->queue && i < PUMP_STEPS && bytes < PUMP_TURN; i++) {
		struct spool_source *s = spool->queue;
		struct spool_job *j = s->job;

		DL_DELETE(spool->queue, s);
		s->queued = false;
		/* Who hears of an end may close the job. */
		j->busy = true;
		bytes += pump_step(s);
		j->busy = false;
		spool_pump_end(j);
	}
}

static void pump_turn(void *data)
{
	struct spool *spool = data;

	spool->pumping = false;
	pump_run(spool);
	if (spool->queue)
		pump_wake(spool);
}

void spool_pump_drain(struct spool *spool, unsigned ms)
{
	uint64_t deadline = loop_now_ms() + ms;

	while (spool->queue && loop_now_ms() < deadline)
		pump_run(spool);
}
