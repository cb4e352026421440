/* SPDX-License-Identifier: MIT */
/*
 * Who says that a log has grown: inotify, one watch a job with live logs, on its folder of logs. uv_fs_event
 * is not used: it reads until there is nothing more to read, and a program that prints without pause
 * always has one more. Here inotify is read at most every WATCH_REST_MS; the logs named are queued; and when
 * the kernel's queue has overflowed, all are. Where inotify gives no more watches, a timer looks.
 */
#include <errno.h>
#include <limits.h>
#include <sys/inotify.h>

#include "backend/diag.h"
#include "backend/spool_impl.h"

#define WATCH_REST_MS 50
#define WATCH_POLL_MS 250
#define WATCH_READ    (64u << 10) /* bytes of events at once */
#define WATCH_READS   16	  /* reads in one turn */

static void watch_queue_all(struct spool_job *j)
{
	for (size_t i = 0; i < j->keys.n; i++)
		spool_pump_queue(j->by_number[i]);
}

static void watch_event(struct spool *spool, const struct inotify_event *e)
{
	struct spool_source *s;
	struct spool_job *j, *next;

	if (e->mask & IN_Q_OVERFLOW) {
		HASH_ITER(hh, spool->jobs, j, next) {
			watch_queue_all(j);
		}
		return;
	}
	HASH_FIND(hh_wd, spool->by_wd, &e->wd, sizeof(e->wd), j);
	s = j && e->len > 0 ? spool_find_source(j, e->name) : NULL;
	if (s)
		spool_pump_queue(s);
}

/* Read events. False: none were there. */
static bool watch_read(struct spool *spool)
{
	_Alignas(struct inotify_event) char buf[WATCH_READ];
	ssize_t n = read(spool->inotify_fd, buf, sizeof(buf));

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const void *)(buf + at);

		watch_event(spool, e);
		at += (ssize_t)(sizeof(*e) + e->len);
	}
	return n > 0;
}

static void watch_on_events(void *data);

static void watch_listen(void *data)
{
	struct spool *spool = data;

	loop_timer_free(take_ptr(spool->rest));
	if (!spool->watch)
		spool->watch = loop_watch_new(spool->loop, spool->inotify_fd, false,
					      watch_on_events, spool);
	if (!spool->watch)
		spool->rest = loop_timer_new(spool->loop, WATCH_POLL_MS, 0, watch_listen, spool);
}

static void watch_on_events(void *data)
{
	struct spool *spool = data;

	for (unsigned i = 0; i < WATCH_READS && watch_read(spool); i++)
		;
	/* Not at once again: the next events of a busy log are worth one look together. */
	loop_watch_free(take_ptr(spool->watch));
	spool->rest = loop_timer_new(spool->loop, WATCH_REST_MS, 0, watch_listen, spool);
	if (!spool->rest)
		watch_listen(spool);
}

static void watch_on_poll(void *data)
{
	struct spool *spool = data;
	struct spool_job *j, *next;
	bool any = false;

	HASH_ITER(hh, spool->jobs, j, next) {
		if (j->polled)
			watch_queue_all(j);
		any |= j->polled;
	}
	if (!any)
		loop_timer_free(take_ptr(spool->poll));
}

static void watch_poll(struct spool_job *j, int err)
{
	struct spool *spool = j->spool;

	if (!spool->said_polled)
		diag(DIAG_WARNING,
		     "can't watch more folders (%s): logs are looked at four times a second; raise "
		     "fs.inotify.max_user_watches and max_user_instances",
		     strerror(err));
	spool->said_polled = true;
	j->polled = true;
	if (!spool->poll)
		spool->poll = loop_timer_new(spool->loop, WATCH_POLL_MS, WATCH_POLL_MS,
					     watch_on_poll, spool);
}

static int watch_open(struct spool *spool)
{
	if (spool->inotify_fd >= 0)
		return 0;
	spool->inotify_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	if (spool->inotify_fd < 0)
		return -errno;
	watch_listen(spool);
	return 0;
}

void spool_watch_job(struct spool_job *j)
{
	struct spool *spool = j->spool;
	cleanup_free char *path = NULL;
	int err;

	if (j->wd >= 0 || j->polled)
		return;
	err = watch_open(spool);
	path = spool_path(spool, j->id, "logs");
	if (err == 0 && !path)
		err = -ENOMEM;
	if (err == 0) {
		j->wd = inotify_add_watch(spool->inotify_fd, path, IN_MODIFY | IN_ONLYDIR);
		if (j->wd < 0)
			err = -errno;
	}
	if (err == 0) {
		HASH_ADD(hh_wd, spool->by_wd, wd, sizeof(j->wd), j);
		if (j->hh_wd.tbl)
			return;
		inotify_rm_watch(spool->inotify_fd, j->wd);
		j->wd = -1;
		err = -ENOMEM;
	}
	watch_poll(j, -err);
}

void spool_unwatch_job(struct spool_job *j)
{
	struct spool *spool = j->spool;

	j->polled = false;
	if (j->wd < 0)
		return;
	HASH_DELETE(hh_wd, spool->by_wd, j);
	inotify_rm_watch(spool->inotify_fd, j->wd);
	j->wd = -1;
}

void spool_watch_stop(struct spool *spool)
{
	loop_watch_free(take_ptr(spool->watch));
	loop_timer_free(take_ptr(spool->rest));
	loop_timer_free(take_ptr(spool->poll));
}
