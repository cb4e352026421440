/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread. Posted functions wait in a list under a lock; an async handle wakes the loop,
 * which takes the whole list and runs it. What else the loop waits for: loop_source.c.
 */
#include "backend/loop.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

#include "backend/loop_impl.h"

/* Posts that make posts for longer than this do not keep loop_stop from ending. */
#define LOOP_DRAIN_MS 5000

struct loop_post {
	loop_fn fn;
	void *data;
	struct loop_post *next;
};

static _Thread_local const struct loop *loop_here;

static void loop_no_memory(void)
{
	static const char text[] = "kxfs: out of memory\n";

	/* Somebody waits for an answer that could never be given: ending is better than hanging. */
	(void)!write(STDERR_FILENO, text, sizeof(text) - 1);
	abort();
}

void *loop_alloc(size_t size)
{
	void *p = calloc(1, size);

	if (!p)
		loop_no_memory();
	return p;
}

int loop_new(struct loop **ret)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (!loop)
		return -ENOMEM;
	loop->lock = (struct lock)LOCK_INIT;
	loop->last = &loop->first;
	*ret = loop;
	return 0;
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

void loop_post(struct loop *loop, loop_fn fn, void *data)
{
	struct loop_post *post = loop_alloc(sizeof(*post));

	post->fn = fn;
	post->data = data;
	lock_scope(&loop->lock);
	*loop->last = post;
	loop->last = &post->next;
	if (loop->awake)
		uv_async_send(&loop->async);
}

bool loop_is_here(const struct loop *loop)
{
	return loop_here == loop;
}

uv_loop_t *loop_uv(struct loop *loop)
{
	return &loop->uv;
}

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
