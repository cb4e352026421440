/* SPDX-License-Identifier: MIT */
/*
 * The I/O thread, and the pool. Any thread may post functions; an async handle wakes the loop to
 * run them. Timers are in a heap. One libuv timer expires when the first of them is due.
 *
 * Pool threads run calls that may wait for a disk. In libuv's own pool, four calls that hang would
 * block all threads. kxfs's pool starts more threads when all of its usual threads hang.
 *
 *	state    | what is in progress                        | what ends it            | next
 *	new      | no thread; posted functions are kept       | loop_start              | running
 *	running  | posted functions and events                | loop_stop sets STOP     | draining
 *	draining | posted functions, and those that they post | none left, or after 5 s | waiting
 *	waiting  | calls on the pool, and what they post      | none left, or after 5 s | closing
 *	closing  | libuv closes all handles                   | all handles are closed  | new
 *
 * A loop is freed when loop_free was called and all references (loop_ref) are dropped. A thread
 * that hangs during shutdown keeps its reference, because it may still post functions. These
 * functions don't run.
 */
#include "backend/base/loop.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <time.h>
#include <utlist.h>

#include "backend/base/lock.h"
#include "backend/base/thread.h"
#include "backend/base/uv.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

/* loop_stop runs posted functions, and the functions that these post, for at most this long. */
#define LOOP_DRAIN_MS 5000
/* Then loop_stop waits at most this long for calls on the pool. */
#define LOOP_HANG_MS 5000
/* While a call waits for a pool thread, check at this interval whether all threads hang. */
#define LOOP_CHECK_MS 100

struct loop_post {
	loop_fn fn, drop;
	void *data;
	struct loop_post *next;
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
	struct loop_post *first; /* protected by LOCK, as are the next four members */
	struct loop_post **last;
	bool awake; /* true if ASYNC can wake the loop */
	bool stop;
	unsigned refs;

	pthread_t thread;
	bool started;
	uv_loop_t uv;
	uv_async_t async;
	uv_prepare_t prepare;
	uv_timer_t tick; /* fires when the first of TIMERS is due */
	struct {
		struct loop_timer **v; /* a heap: V[0] is due first */
		size_t n, max;
		uint64_t seq;
		bool closed; /* true if timers can't be set any more */
	} timers;	     /* this and the members below: I/O thread only */
	struct pool *pool;
	/* Calls on the pool whose DONE has not returned yet. */
	size_t working;
	struct loop_timer check; /* checks whether the pool hangs */
	struct loop_watch *watches;
	struct loop_signal_handle *signals;
};

static _Thread_local const struct loop *loop_here;

/* --- posts --- */

void loop_post(struct loop *loop, loop_fn fn, void *data)
{
	loop_post_or_drop(loop, fn, NULL, data);
}

void loop_post_or_drop(struct loop *loop, loop_fn fn, loop_fn drop, void *data)
{
	struct loop_post *post = new0(struct loop_post);

	post->fn = fn;
	post->drop = drop;
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

/* Run all functions posted until now. Return false if there were none. */
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
	return spec_time_of(now);
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

static bool timer_is_before(const struct loop_timer *a, const struct loop_timer *b)
{
	return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void timer_put(struct loop *loop, size_t i, struct loop_timer *t)
{
	loop->timers.v[i] = t;
	t->position = i + 1;
}

/* Put T at position I, and move it until the heap is in order. */
static void timer_sift(struct loop *loop, size_t i, struct loop_timer *t)
{
	struct loop_timer **v = loop->timers.v;

	while (i > 0 && timer_is_before(t, v[(i - 1) / 2])) {
		timer_put(loop, i, v[(i - 1) / 2]);
		i = (i - 1) / 2;
	}
	for (;;) {
		size_t below = 2 * i + 1;

		if (below + 1 < loop->timers.n && timer_is_before(v[below + 1], v[below]))
			below++;
		if (below >= loop->timers.n || !timer_is_before(v[below], t))
			break;
		timer_put(loop, i, v[below]);
		i = below;
	}
	timer_put(loop, i, t);
}

static void timer_take(struct loop *loop, struct loop_timer *t)
{
	size_t i = t->position - 1;
	struct loop_timer *last = loop->timers.v[--loop->timers.n];

	t->position = 0;
	if (last != t)
		timer_sift(loop, i, last);
}

/*
 * Run the timers that have expired, but not those that their callbacks set. Otherwise a timer that
 * always sets itself to 0 ms would block the loop. A timer that a callback sets has a higher SEQ.
 * In the heap, it follows all timers that had already expired.
 */
static void loop_on_tick(uv_timer_t *uv)
{
	struct loop *loop = container_of(uv, struct loop, tick);
	uint64_t now = loop_now_ms(), seq = loop->timers.seq;

	while (loop->timers.n) {
		struct loop_timer *t = loop->timers.v[0];

		if (t->at > now || t->seq > seq)
			break;
		timer_take(loop, t);
		t->fn(t->data);
	}
}

static void loop_on_prepare(uv_prepare_t *uv)
{
	struct loop *loop = container_of(uv, struct loop, prepare);
	uint64_t now = loop_now_ms(), at;

	if (!loop->timers.n) {
		uv_timer_stop(&loop->tick);
		return;
	}
	at = loop->timers.v[0]->at;
	uv_update_time(&loop->uv);
	uv_timer_start(&loop->tick, loop_on_tick, at > now ? at - now : 0, 0);
}

static void timer_set(struct loop *loop, struct loop_timer *t, uint64_t ms)
{
	assert(loop_is_here(loop));
	if (t->position)
		timer_take(loop, t);
	t->at = loop_now_ms() + ms;
	t->seq = ++loop->timers.seq;
	if (loop->timers.n == loop->timers.max) {
		loop->timers.max = loop->timers.max ? 2 * loop->timers.max : 16;
		loop->timers.v =
			mem_grow(loop->timers.v, loop->timers.max, sizeof(struct loop_timer *));
	}
	loop->timers.n++;
	timer_sift(loop, loop->timers.n - 1, t);
}

void loop_timer_set(struct loop_timer *t, uint64_t ms)
{
	if (!t->loop->timers.closed)
		timer_set(t->loop, t, ms);
}

void loop_timer_stop(struct loop_timer *t)
{
	if (!t->position)
		return;
	assert(loop_is_here(t->loop));
	timer_take(t->loop, t);
}

/* --- descriptors --- */

static void loop_on_watch(uv_poll_t *uv, int status, int events)
{
	struct loop_watch *watch = container_of(uv, struct loop_watch, uv);

	/* Ignore STATUS: FN gets FD's error when it reads. */
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

/* The usual number of threads, as in libuv's pool. More would not make a disk faster. */
#define POOL_USUAL 4
/* The largest number of threads. If this many calls hang, the whole disk probably hangs. */
#define POOL_MOST 64

struct loop_job {
	struct loop *loop;
	loop_fn work;
	loop_fn done;
	void *data;
	bool of_many;
	struct loop_job *next;
};

/* The last thread to end frees the pool. */
struct pool {
	struct lock lock;
	pthread_cond_t wake;
	/* LOCK protects the members below. */
	struct {
		struct loop_job *first, **last;
	} queues[2];  /* waiting calls; queues[true]: of loop_work_of_many */
	bool of_many; /* the queue that pool_take checks first */
	unsigned waiting;
	unsigned n, idle; /* number of threads, and of idle threads */
	/* BEGUN: number of calls that were started. SEEN: value of BEGUN at the last pool_check. */
	uint64_t begun, seen;
	bool over;
};

static struct pool *pool_new(void)
{
	struct pool *p = new0(struct pool);

	p->lock = (struct lock)LOCK_INIT;
	pthread_cond_init(&p->wake, NULL);
	for (unsigned i = 0; i < array_size(p->queues); i++)
		p->queues[i].last = &p->queues[i].first;
	return p;
}

static void pool_free(struct pool *p)
{
	pthread_cond_destroy(&p->wake);
	free(p);
}

/*
 * Return the next call, or NULL if this thread must end. Set *LAST to true if the pool has ended,
 * and this is its last thread. The caller then frees the pool.
 */
static struct loop_job *pool_take(struct pool *p, bool *last)
{
	struct loop_job *job;
	unsigned q;

	lock_scope(&p->lock);
	while (!p->waiting && !p->over && p->idle < POOL_USUAL) {
		p->idle++;
		pthread_cond_wait(&p->wake, &p->lock.mutex);
		p->idle--;
	}
	q = p->queues[p->of_many].first ? p->of_many : !p->of_many;
	job = p->over ? NULL : p->queues[q].first;
	if (!job) {
		p->n--;
		*last = p->over && p->n == 0;
		return NULL;
	}
	p->queues[q].first = job->next;
	if (!job->next)
		p->queues[q].last = &p->queues[q].first;
	p->of_many = !job->of_many;
	p->waiting--;
	p->begun++;
	return job;
}

static void loop_on_done(void *data)
{
	struct loop_job *j = data;
	struct loop *loop = j->loop;

	if (j->done)
		j->done(j->data);
	free(j);
	loop->working--;
}

static void loop_on_work(struct loop_job *j)
{
	struct loop *loop = j->loop;

	j->work(j->data);
	loop_post_or_drop(loop, loop_on_done, free, j);
	loop_unref(loop);
}

static void *pool_main(void *data)
{
	struct pool *p = data;
	struct loop_job *job;
	bool last = false;

	while ((job = pool_take(p, &last)))
		loop_on_work(job);
	if (last)
		pool_free(p);
	return NULL;
}

/* Start a thread that is already counted in P->N. If this fails, pool_check retries. */
static void start_thread(struct pool *p)
{
	if (thread_start(pool_main, p, NULL) == 0)
		return;
	lock_scope(&p->lock);
	p->n--;
}

static void pool_add(struct pool *p, struct loop_job *job)
{
	bool more;

	{
		lock_scope(&p->lock);
		*p->queues[job->of_many].last = job;
		p->queues[job->of_many].last = &job->next;
		more = ++p->waiting > p->idle && p->n < POOL_USUAL;
		p->n += more;
		pthread_cond_signal(&p->wake);
	}
	if (more)
		start_thread(p);
}

/*
 * Called periodically while calls wait for a thread. If no call has started since the last check,
 * all threads probably hang, so start another. Return false if no call waits.
 */
static bool pool_check(struct pool *p)
{
	bool more;

	{
		lock_scope(&p->lock);
		if (!p->waiting)
			return false;
		more = p->begun == p->seen && p->n < POOL_MOST;
		p->seen = p->begun;
		p->n += more;
	}
	if (more)
		start_thread(p);
	return true;
}

/* Start no more calls, and end idle threads. Don't wait for running calls, which may hang. */
static void pool_end(struct pool *p)
{
	bool last;

	{
		lock_scope(&p->lock);
		p->over = true;
		last = p->n == 0;
		pthread_cond_broadcast(&p->wake);
	}
	if (last)
		pool_free(p);
}

static void loop_on_check(void *data)
{
	struct loop *loop = data;

	if (pool_check(loop->pool))
		timer_set(loop, &loop->check, LOOP_CHECK_MS);
}

static void give_pool(struct loop *loop, loop_fn work, loop_fn done, void *data, bool of_many)
{
	struct loop_job *j = new0(struct loop_job);

	assert(loop_is_here(loop));
	*j = (struct loop_job){loop, work, done, data, of_many, NULL};
	loop_ref(loop);
	loop->working++;
	pool_add(loop->pool, j);
	if (!loop->check.position)
		timer_set(loop, &loop->check, LOOP_CHECK_MS);
}

void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data)
{
	give_pool(loop, work, done, data, false);
}

void loop_work_of_many(struct loop *loop, loop_fn work, loop_fn done, void *data)
{
	give_pool(loop, work, done, data, true);
}

/* --- life cycle --- */

void loop_new(struct loop **ret)
{
	struct loop *loop = new0(struct loop);

	loop->lock = (struct lock)LOCK_INIT;
	loop->last = &loop->first;
	loop->refs = 1;
	loop->pool = pool_new();
	loop_timer_init(&loop->check, loop, loop_on_check, loop);
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
	const struct loop *loop = data;
	const void *kept[] = {&loop->async, &loop->prepare, &loop->tick};

	for (size_t i = 0; i < array_size(kept); i++)
		if (handle == kept[i] && loop->awake)
			return;
	if (!uv_is_closing(handle))
		uv_close(handle, NULL);
}

static void loop_close_all(struct loop *loop)
{
	while (loop->watches)
		loop_watch_free(loop->watches);
	while (loop->signals)
		loop_signal_free(loop, loop->signals);
	uv_walk(&loop->uv, loop_close_left, loop);
}

/* Stop loop_post from using ASYNC, which is about to be closed. */
static void loop_sleep(struct loop *loop)
{
	lock_scope(&loop->lock);
	loop->awake = false;
}

static void loop_on_late(void *data)
{
	*(bool *)data = true;
}

/* Stop all timers. Then wait up to LOOP_HANG_MS for the calls on the pool. */
static void loop_wait_for_work(struct loop *loop)
{
	struct loop_timer deadline;
	bool late = false;

	loop->timers.closed = true;
	while (loop->timers.n)
		timer_take(loop, loop->timers.v[loop->timers.n - 1]);
	loop_timer_init(&deadline, loop, loop_on_late, &late);
	timer_set(loop, &deadline, LOOP_HANG_MS);
	timer_set(loop, &loop->check, LOOP_CHECK_MS);
	/* A posted function may start more calls. */
	while ((loop_run_posts(loop) || loop->working) && !late) {
		loop_close_all(loop);
		uv_run(&loop->uv, loop->working ? UV_RUN_ONCE : UV_RUN_NOWAIT);
	}
	loop_timer_stop(&deadline);
	loop_timer_stop(&loop->check);
}

static void *loop_main(void *data)
{
	struct loop *loop = data;
	uint64_t deadline;

	loop_here = loop;
	uv_run(&loop->uv, UV_RUN_DEFAULT);

	deadline = loop_now_ms() + LOOP_DRAIN_MS;
	while (loop_run_posts(loop) && loop_now_ms() < deadline)
		;
	loop_wait_for_work(loop);
	loop_sleep(loop);
	do {
		loop_close_all(loop);
		uv_run(&loop->uv, UV_RUN_ONCE);
	} while (loop_run_posts(loop) || uv_loop_alive(&loop->uv));
	uv_loop_close(&loop->uv);
	return NULL;
}

/* uv_loop_init may abort() if fewer than three descriptors are free, so check this first. */
static int loop_check_descriptors(void)
{
	cleanup_fd int first = eventfd(0, EFD_CLOEXEC);
	cleanup_fd int second = eventfd(0, EFD_CLOEXEC);
	cleanup_fd int third = eventfd(0, EFD_CLOEXEC);

	return third < 0 ? -errno : 0;
}

int loop_start(struct loop *loop)
{
	int err = loop_check_descriptors();

	if (err < 0)
		return err;
	err = uv_loop_init(&loop->uv);
	if (err < 0)
		return err;
	err = uv_async_init(&loop->uv, &loop->async, loop_on_async);
	if (err < 0) {
		uv_loop_close(&loop->uv);
		return err;
	}
	uv_timer_init(&loop->uv, &loop->tick);
	uv_prepare_init(&loop->uv, &loop->prepare);
	uv_prepare_start(&loop->prepare, loop_on_prepare);
	{
		lock_scope(&loop->lock);
		loop->awake = true;
		/* Run the functions that were posted before the start. */
		uv_async_send(&loop->async);
	}
	err = thread_start(loop_main, loop, &loop->thread);
	if (err < 0) {
		loop_sleep(loop);
		uv_walk(&loop->uv, loop_close_left, loop);
		uv_run(&loop->uv, UV_RUN_DEFAULT);
		uv_loop_close(&loop->uv);
		return err;
	}
	loop->started = true;
	return 0;
}

bool loop_stop(struct loop *loop)
{
	assert(!loop_is_here(loop));
	if (loop->started) {
		{
			lock_scope(&loop->lock);
			loop->stop = true;
			uv_async_send(&loop->async);
		}
		pthread_join(loop->thread, NULL);
		loop->started = false;
	}
	return loop->working == 0;
}

void loop_ref(struct loop *loop)
{
	lock_scope(&loop->lock);
	loop->refs++;
}

void loop_unref(struct loop *loop)
{
	struct loop_post *post;
	bool last;

	{
		lock_scope(&loop->lock);
		last = --loop->refs == 0;
	}
	if (!last)
		return;
	post = loop_take_posts(loop);
	while (post) {
		struct loop_post *next = post->next;

		if (post->drop)
			post->drop(post->data);
		free(post);
		post = next;
	}
	free(loop->timers.v);
	free(loop);
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	assert(!loop->started);
	pool_end(loop->pool);
	loop_unref(loop);
}
