/* SPDX-License-Identifier: MIT */
/*
 * What wakes the loop beside posts: timers, descriptors, signals, and work that is done on libuv's
 * pool. libuv closes handles in a later round, so each is freed by its own close callback.
 */
#include <errno.h>
#include <signal.h>
#include <utlist.h>

#include "backend/loop_impl.h"

static void loop_on_timer(uv_timer_t *uv)
{
	struct loop_timer *timer = container_of(uv, struct loop_timer, uv);

	timer->fn(timer->data);
}

static void loop_timer_closed(uv_handle_t *handle)
{
	free(container_of((uv_timer_t *)handle, struct loop_timer, uv));
}

struct loop_timer *loop_timer_new(struct loop *loop, unsigned delay_ms, unsigned period_ms,
				  loop_fn fn, void *data)
{
	struct loop_timer *timer = calloc(1, sizeof(*timer));

	assert(loop_is_here(loop));
	if (!timer)
		return NULL;
	timer->loop = loop;
	timer->fn = fn;
	timer->data = data;
	uv_timer_init(&loop->uv, &timer->uv);
	uv_update_time(&loop->uv); /* a long callback must not make the delay shorter */
	uv_timer_start(&timer->uv, loop_on_timer, delay_ms, period_ms);
	DL_APPEND(loop->timers, timer);
	return timer;
}

void loop_timer_free(struct loop_timer *timer)
{
	if (!timer)
		return;
	assert(loop_is_here(timer->loop));
	DL_DELETE(timer->loop->timers, timer);
	uv_close((uv_handle_t *)&timer->uv, loop_timer_closed);
}

static void loop_on_watch(uv_poll_t *uv, int status, int events)
{
	struct loop_watch *watch = container_of(uv, struct loop_watch, uv);

	/* Of an error the callback learns when it reads. */
	(void)status;
	(void)events;
	watch->fn(watch->data);
}

static void loop_watch_closed(uv_handle_t *handle)
{
	free(container_of((uv_poll_t *)handle, struct loop_watch, uv));
}

struct loop_watch *loop_watch_new(struct loop *loop, int fd, bool priority, loop_fn fn, void *data)
{
	struct loop_watch *watch = calloc(1, sizeof(*watch));
	int err;

	assert(loop_is_here(loop));
	if (!watch)
		return NULL;
	watch->loop = loop;
	watch->fn = fn;
	watch->data = data;
	err = uv_poll_init(&loop->uv, &watch->uv, fd);
	if (err < 0) {
		free(watch);
		errno = -err;
		return NULL;
	}
	DL_APPEND(loop->watches, watch);
	uv_poll_start(&watch->uv, priority ? UV_PRIORITIZED : UV_READABLE, loop_on_watch);
	return watch;
}

void loop_watch_free(struct loop_watch *watch)
{
	if (!watch)
		return;
	assert(loop_is_here(watch->loop));
	DL_DELETE(watch->loop->watches, watch);
	uv_close((uv_handle_t *)&watch->uv, loop_watch_closed);
}

static void loop_signal_closed(uv_handle_t *handle)
{
	free(container_of((uv_signal_t *)handle, struct loop_signal_handle, uv));
}

void loop_signal_free(struct loop *loop, struct loop_signal_handle *s)
{
	DL_DELETE(loop->signals, s);
	uv_close((uv_handle_t *)&s->uv, loop_signal_closed);
}

static void loop_on_signal(uv_signal_t *uv, int sig)
{
	struct loop_signal_handle *s = container_of(uv, struct loop_signal_handle, uv);

	(void)sig;
	s->fn(s->data);
}

int loop_signal(struct loop *loop, int sig, loop_fn fn, void *data)
{
	struct loop_signal_handle *s = calloc(1, sizeof(*s));
	sigset_t set;
	int err;

	assert(loop_is_here(loop));
	if (!s)
		return -ENOMEM;
	s->fn = fn;
	s->data = data;
	uv_signal_init(&loop->uv, &s->uv);
	DL_APPEND(loop->signals, s);
	err = uv_signal_start(&s->uv, loop_on_signal, sig);
	if (err < 0) {
		loop_signal_free(loop, s);
		return err;
	}
	sigemptyset(&set);
	sigaddset(&set, sig);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	return 0;
}

struct loop_job {
	uv_work_t uv;
	loop_fn work;
	loop_fn done;
	void *data;
};

static void loop_on_work(uv_work_t *uv)
{
	struct loop_job *job = container_of(uv, struct loop_job, uv);

	job->work(job->data);
}

static void loop_on_work_done(uv_work_t *uv, int status)
{
	struct loop_job *job = container_of(uv, struct loop_job, uv);

	(void)status; /* never cancelled */
	if (job->done)
		job->done(job->data);
	free(job);
}

void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data)
{
	struct loop_job *job = loop_alloc(sizeof(*job));

	assert(loop_is_here(loop));
	job->work = work;
	job->done = done;
	job->data = data;
	uv_queue_work(&loop->uv, &job->uv, loop_on_work, loop_on_work_done);
}
