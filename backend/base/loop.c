/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread. Posted functions wait in a list under a lock; an async handle wakes the loop, which takes the
 * whole list and runs it. What else wakes it, timers, descriptors and signals, the loop has in lists of its own,
 * so that loop_stop can release those that nobody has freed. libuv closes a handle in a later round, so the
 * memory of each is freed by its close callback.
 *
 *	state    | what is under way                     | what ends it          | next
 *	new      | posts are kept, there is no thread    | loop_start            | running
 *	running  | posts and events are served           | loop_stop sets STOP   | draining
 *	draining | posts and their posts, for at most 5 s | none is left          | closing
 *	closing  | all handles close, pool work ends     | the loop is not alive | new (only loop_free is useful)
 */
#include "backend/base/loop.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <time.h>
#include <utlist.h>

#include "backend/base/lock.h"
#include "backend/base/uv.h"
#include "spec/base/mem.h"

/* Posts that make posts for longer than this do not keep loop_stop from ending. */
#define LOOP_DRAIN_MS 5000

struct loop_post {
	loop_fn fn;
	void *data;
	struct loop_post *next;
};

struct loop_timer {
	uv_timer_t uv;
	struct loop *loop;
	loop_fn fn;
	void *data;
	struct loop_timer *prev, *next;
};

struct loop_watch {
	uv_poll_t uv;
	struct loop *loop;
	loop_fn fn;
	void *data;
	struct loop_watch *prev, *next;
};

struct loop_signal_handle {
	uv_signal_t uv;
	loop_fn fn;
	void *data;
	struct loop_signal_handle *prev, *next;
};

struct loop {
	struct lock lock;
	struct loop_post *first; /* under the lock */
	struct loop_post **last; /* under the lock */
	bool awake;		 /* ASYNC may be sent to; under the lock */
	bool stop;		 /* under the lock */

	pthread_t thread;
	bool started;
	uv_loop_t uv;
	uv_async_t async;
	struct loop_timer *timers; /* I/O thread */
	struct loop_watch *watches;
	struct loop_signal_handle *signals;
};

static _Thread_local const struct loop *loop_here;

/* --- posts --- */

void loop_post(struct loop *loop, loop_fn fn, void *data)
{
	struct loop_post *post = new0(struct loop_post);

	post->fn = fn;
	post->data = data;
	lock_scope(&loop->lock);
	*loop->last = post;
	loop->last = &post->next;
	if (loop->awake)
		uv_async_send(&loop->async);
}

static struct loop_post *loop_take_posts(struct loop *loop)
{
	struct loop_post *posts;

	lock_scope(&loop->lock);
	posts = loop->first;
	loop->first = NULL;
	loop->last = &loop->first;
	return posts;
}

/* Run all that is posted by now. False: there was nothing. */
static bool loop_run_posts(struct loop *loop)
{
	struct loop_post *post = loop_take_posts(loop);
	bool any = post;

	while (post) {
		struct loop_post *next = post->next;

		post->fn(post->data);
		free(post);
		post = next;
	}
	return any;
}

bool loop_is_here(const struct loop *loop)
{
	return loop_here == loop;
}

uv_loop_t *loop_uv(struct loop *loop)
{
	return &loop->uv;
}

/* --- clocks --- */

static int64_t loop_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t loop_time_ns(void)
{
	return loop_clock_ns(CLOCK_REALTIME);
}

uint64_t loop_now_ms(void)
{
	return (uint64_t)loop_clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* --- timers --- */

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
	struct loop_timer *timer = new0(struct loop_timer);

	assert(loop_is_here(loop));
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

/* --- descriptors --- */

static void loop_on_watch(uv_poll_t *uv, int status, int events)
{
	struct loop_watch *watch = container_of(uv, struct loop_watch, uv);

	/* The callback learns of an error when it reads. */
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
	struct loop_watch *watch = new0(struct loop_watch);
	int err;

	assert(loop_is_here(loop));
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

/* --- signals --- */

static void loop_signal_closed(uv_handle_t *handle)
{
	free(container_of((uv_signal_t *)handle, struct loop_signal_handle, uv));
}

static void loop_signal_free(struct loop *loop, struct loop_signal_handle *s)
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
	struct loop_signal_handle *s = new0(struct loop_signal_handle);
	sigset_t set;
	int err;

	assert(loop_is_here(loop));
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

/* --- the pool --- */

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
	struct loop_job *job = new0(struct loop_job);

	assert(loop_is_here(loop));
	job->work = work;
	job->done = done;
	job->data = data;
	uv_queue_work(&loop->uv, &job->uv, loop_on_work, loop_on_work_done);
}

/* --- life --- */

void loop_new(struct loop **ret)
{
	struct loop *loop = new0(struct loop);

	loop->lock = (struct lock)LOCK_INIT;
	loop->last = &loop->first;
	*ret = loop;
}

static void loop_on_async(uv_async_t *async)
{
	struct loop *loop = container_of(async, struct loop, async);
	bool stop;

	loop_run_posts(loop);
	{
		lock_scope(&loop->lock);
		stop = loop->stop;
	}
	if (stop)
		uv_stop(&loop->uv);
}

static void loop_close_left(uv_handle_t *handle, void *data)
{
	(void)data;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

/* Nobody sends to ASYNC any more. */
static void loop_sleep(struct loop *loop)
{
	lock_scope(&loop->lock);
	loop->awake = false;
}

/* Close whatever is open; what runs on the pool is waited for, and its end may make more. */
static void loop_wind_down(struct loop *loop)
{
	loop_sleep(loop);
	do {
		while (loop->timers)
			loop_timer_free(loop->timers);
		while (loop->watches)
			loop_watch_free(loop->watches);
		while (loop->signals)
			loop_signal_free(loop, loop->signals);
		uv_walk(&loop->uv, loop_close_left, NULL);
		uv_run(&loop->uv, UV_RUN_ONCE);
	} while (loop_run_posts(loop) || uv_loop_alive(&loop->uv));
}

static void *loop_main(void *data)
{
	struct loop *loop = data;
	uint64_t deadline;
	sigset_t set;

	loop_here = loop;
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD); /* children's ends, for uv_spawn */
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	uv_run(&loop->uv, UV_RUN_DEFAULT);

	deadline = loop_now_ms() + LOOP_DRAIN_MS;
	while (loop_run_posts(loop) && loop_now_ms() < deadline)
		;
	loop_wind_down(loop);
	uv_loop_close(&loop->uv);
	return NULL;
}

/* Start the thread with all signals blocked, the caller's mask unchanged. */
static int loop_thread(struct loop *loop)
{
	sigset_t all, old;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&loop->thread, NULL, loop_main, loop);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

int loop_start(struct loop *loop)
{
	int err = uv_loop_init(&loop->uv);

	if (err < 0)
		return err;
	err = uv_async_init(&loop->uv, &loop->async, loop_on_async);
	if (err < 0) {
		uv_loop_close(&loop->uv);
		return err;
	}
	{
		lock_scope(&loop->lock);
		loop->awake = true;
		uv_async_send(&loop->async); /* for what was posted before */
	}
	err = loop_thread(loop);
	if (err < 0) {
		loop_sleep(loop);
		uv_close((uv_handle_t *)&loop->async, NULL);
		uv_run(&loop->uv, UV_RUN_DEFAULT);
		uv_loop_close(&loop->uv);
		return err;
	}
	loop->started = true;
	return 0;
}

void loop_stop(struct loop *loop)
{
	assert(!loop_is_here(loop));
	if (!loop->started)
		return;
	{
		lock_scope(&loop->lock);
		loop->stop = true;
		uv_async_send(&loop->async);
	}
	pthread_join(loop->thread, NULL);
	loop->started = false;
}

void loop_free(struct loop *loop)
{
	struct loop_post *post;

	if (!loop)
		return;
	assert(!loop->started);
	post = loop_take_posts(loop);
	while (post) {
		struct loop_post *next = post->next;

		free(post);
		post = next;
	}
	free(loop);
}
