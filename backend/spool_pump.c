/* SPDX-License-Identifier: MIT */
/*
 * The merged index as it grows. Logs that may have grown stand in a queue, and are looked at; lines whose turn
 * it is (spool_order.c) become records (spool_step.c), which are written. A turn of the loop does a bounded part of
 * that, so that a program which prints faster than anybody reads costs the loop a slice a turn. What fails
 * is tried again every second. Also here: the end of the index.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/diag.h"
#include "backend/spool_impl.h"
#include "backend/spool_write.h"

#define PUMP_TURN     (1u << 20) /* bytes in one turn of the loop */
#define PUMP_STEPS    256	 /* steps in one turn */
#define PUMP_RETRY_MS 1000

static void pump_on_retry(void *data);

/* J's merged log can't go on because of ERR, which is said once: try again. */
static void pump_later(struct spool_job *j, int err)
{
	struct spool *spool = j->spool;

	if (!j->said_stuck)
		diag(DIAG_ERROR, "%s: its merged log can't be made: %s; trying again every second",
		     j->id, strerror(-err));
	j->said_stuck = true;
	if (!spool->retry && !spool->stopped)
		spool->retry = loop_timer_new(spool->loop, PUMP_RETRY_MS, 0, pump_on_retry, spool);
}

/* --- the end --- */

/* For readers S has ended. */
static void pump_tell_end(struct spool_source *s)
{
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
}

/* For who asked, too. */
static void pump_source_ended(struct spool_source *s)
{
	loop_fn fn = s->fn;

	pump_tell_end(s);
	s->fn = NULL;
	if (fn)
		fn(s->data);
}

/* All of S is in the index: its times are of no more use. */
static void pump_source_done(struct spool_source *s)
{
	s->live = false;
	s->record_known = false;
	s->job->n_live--;
	spool_source_forget_times(s);
	pump_source_ended(s);
}

void spool_pump_end(struct spool_job *j)
{
	struct merge_record r;

	if (!j->loaded || j->n_live > 0 || j->n_out > 0)
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
			spool_index_flush(j);
			return;
		}
		spool_index_end(j);
	}
	spool_settle_check(j, false);
	if (j->closed && !j->busy)
		spool_job_free(j);
}

/* --- looking at logs --- */

static void pump_turn(void *data);

void spool_pump_wake(struct spool *spool)
{
	if (spool->pumping || spool->stopped)
		return;
	spool->pumping = true;
	loop_post(spool->loop, pump_turn, spool);
}

void spool_pump_queue(struct spool_source *s)
{
	struct spool *spool = s->job->spool;

	if (!s->live || s->queued || s->opening)
		return;
	s->queued = true;
	s->stuck = false;
	DL_APPEND(spool->queue, s);
	spool_pump_wake(spool);
}

void spool_pump_grown(struct spool_source *s, uint64_t size)
{
	s->size = max_of(s->size, size);
	spool_pump_queue(s);
}

/* What of J could not go on is tried again. */
static void pump_retry(struct spool_job *j)
{
	for (size_t i = 0; i < j->keys.n; i++) {
		struct spool_source *s = j->by_number[i];

		if (s->stuck && s->opening)
			spool_source_open(s);
		else if (s->stuck)
			spool_pump_queue(s);
	}
	j->stuck = false;
	spool_order_list(j);
	spool_index_flush(j);
}

static void pump_on_retry(void *data)
{
	struct spool *spool = data;
	struct spool_job *j, *next;
	int err;

	loop_timer_free(take_ptr(spool->retry));
	HASH_ITER(hh, spool->jobs, j, next) {
		err = j->loaded || j->load ? 0 : spool_load(j);
		if (err < 0)
			pump_later(j, err);
		else if (j->loaded)
			pump_retry(j);
	}
}

void spool_pump_loaded(struct spool_job *j, int err)
{
	bool busy = j->busy;

	j->busy = true;
	if (err < 0) {
		pump_later(j, err);
		spool_settle_check(j, true);
	} else {
		spool_settle_loaded(j);
	}
	for (size_t i = 0; i < j->keys.n; i++) {
		struct spool_source *s = j->by_number[i];

		if (err == 0 && s->opening)
			spool_source_open(s);
		else if (s->writer)
			spool_writer_begin(take_ptr(s->writer));
	}
	j->busy = busy;
	if (busy)
		return;
	if (j->closed && !j->end_asked)
		spool_job_free(j);
	else
		spool_pump_end(j);
}

/* Who waits for the end of S need not wait for the disk. */
void spool_pump_stuck(struct spool_source *s, int err)
{
	pump_later(s->job, err);
	spool_order_remove(s);
	s->stuck = true;
	spool_settle_check(s->job, true);
	if (s->ending)
		pump_source_ended(s);
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
	if (s->seen <= s->rushed)
		spool_order_rush(s);
	{
		lock_scope(&spool->lock);
		log = s->log;
		if (log)
			log->refs++;
	}
	log_tell(log);
}

int spool_pump_size(const struct spool_source *s, uint64_t *ret)
{
	char path[SPOOL_PATH_MAX];
	struct stat st;

	*ret = s->size;
	if (s->job->spool->fetch)
		return 0;
	*ret = 0;
	if (!spool_name(path, s->job->id, "logs", s->key))
		return -ENAMETOOLONG;
	if (fstatat(s->job->spool->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	*ret = (uint64_t)st.st_size;
	return 0;
}

/* S, which is not in the queue any more, may have grown, or ended. */
static void pump_look(struct spool_source *s)
{
	struct spool_job *j = s->job;
	uint64_t size;
	int err = spool_pump_size(s, &size);

	if (err < 0) {
		spool_pump_stuck(s, err);
		return;
	}
	pump_seen(s, size);
	if (j->keys.v[s->number].indexed < s->seen)
		spool_order_add(s);
	if (!s->ending) {
		spool_settle_check(j, false);
		return;
	}
	spool_order_close(s);
	if (s->place == 0 && j->n_out == 0)
		pump_source_done(s);
	else
		pump_tell_end(s); /* it is done when all of it is in the index, on disk */
	spool_settle_check(j, false);
}

void spool_pump_written(struct spool_job *j, int err)
{
	bool busy = j->busy;

	j->busy = true;
	j->stuck = err < 0;
	if (err < 0)
		pump_later(j, err);
	else
		j->said_stuck = false;
	spool_settle_check(j, err < 0);
	for (size_t i = 0; j->n_open < j->n_live && i < j->keys.n; i++) {
		struct spool_source *s = j->by_number[i];

		if (!s->live || !s->ending)
			continue;
		if (err < 0)
			pump_source_ended(s);
		else
			spool_pump_queue(s);
	}
	spool_order_list(j);
	if (err == 0)
		spool_index_flush(j);
	j->busy = busy;
	if (!busy)
		spool_pump_end(j);
}

/* --- turns --- */

static void pump_run(struct spool *spool)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < PUMP_STEPS && bytes < PUMP_TURN; i++) {
		struct spool_source *s = spool->queue;
		struct spool_job *j = s ? s->job : spool->active;

		if (!j)
			return;
		/* Who hears of an end may close the job. */
		j->busy = true;
		if (s) {
			DL_DELETE(spool->queue, s);
			s->queued = false;
			pump_look(s);
		} else {
			bytes += spool_step(j);
			spool_order_rotate(j);
		}
		j->busy = false;
		spool_pump_end(j);
	}
}

static void pump_turn(void *data)
{
	struct spool *spool = data;

	spool->pumping = false;
	pump_run(spool);
	if (spool->queue || spool->active)
		spool_pump_wake(spool);
}

static bool pump_is_writing(const struct spool *spool)
{
	for (const struct spool_job *j = spool->jobs; j; j = j->hh.next)
		if (j->batch)
			return true;
	return false;
}

/* For what is being written. */
static void pump_wait(struct spool *spool, uint64_t deadline)
{
	struct spool_job *j, *next;

	HASH_ITER(hh, spool->jobs, j, next) {
		uint64_t now = loop_now_ms();

		spool_index_wait(j, now < deadline ? (unsigned)(deadline - now) : 0);
	}
}

void spool_pump_drain(struct spool *spool, unsigned ms)
{
	uint64_t deadline = loop_now_ms() + ms;

	spool_order_drain(spool);
	while ((spool->queue || spool->active || pump_is_writing(spool)) &&
	       loop_now_ms() < deadline) {
		pump_run(spool);
		pump_wait(spool, deadline);
	}
}
