/* SPDX-License-Identifier: MIT */
/*
 * Replaces loop.c, thread.c, random.c and diag.c of backend/base, and a part of process.c. As on
 * the I/O thread, posts run in order, timers run when they are due, and each iteration runs one
 * callback. A few concurrent tasks do the work of the thread pool. kxfs creates one loop each time
 * it is started.
 */

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/process.h"
#include "backend/base/random.h"
#include "backend/base/thread.h"
#include "backend/base/uv.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "tests/sim/kernel.h"
#include "tests/sim/sim.h"
#include "tests/sim/world.h"

#define WORKERS 4
#define EPOCH_S 1790000000 /* the wall clock at the start of a history */

struct post {
	loop_fn fn;
	void *data;
	struct post *next;
};

struct job {
	loop_fn work, done;
	void *data;
	struct job *next;
};

struct loop {
	struct post *posts, **last;
	struct loop_timer **timers; /* unordered */
	size_t n_timers, max_timers;
	uint64_t seq;
	struct job *jobs, **last_job; /* waiting for a worker */
	unsigned n_working;	      /* busy workers */
	bool started, closed;
};

static struct loop *the_loop;
static bool in_loop;
static int64_t clock_step;

/* --- one iteration --- */

static struct loop_timer *first_timer(const struct loop *l)
{
	struct loop_timer *first = NULL;

	for (size_t i = 0; i < l->n_timers; i++)
		if (!first || l->timers[i]->at < first->at ||
		    (l->timers[i]->at == first->at && l->timers[i]->seq < first->seq))
			first = l->timers[i];
	return first;
}

uint64_t sim_loop_due(void)
{
	const struct loop_timer *first;

	if (!the_loop || !the_loop->started)
		return UINT64_MAX;
	if (the_loop->posts)
		return 0;
	first = first_timer(the_loop);
	return first ? first->at * SIM_MS : UINT64_MAX;
}

void sim_loop_call(void (*fn)(void *data), void *data)
{
	bool was = in_loop, was_charged = sim_charge(true);

	in_loop = true;
	fn(data);
	in_loop = was;
	sim_charge(was_charged);
	if (lock_held)
		sim_fail("a callback has returned while it holds a lock");
}

static void timer_take(struct loop *l, struct loop_timer *t)
{
	struct loop_timer *last = l->timers[--l->n_timers];

	l->timers[t->position - 1] = last;
	last->position = t->position;
	t->position = 0;
}

void sim_loop_turn(void)
{
	struct loop *l = the_loop;
	struct post *p = l->posts;
	struct loop_timer *t = first_timer(l);

	/* If a post and a timer are due, choose one of them at random. */
	if (t && t->at * SIM_MS <= sim_now() && (!p || sim_chance(SIM_ORDER, 500))) {
		timer_take(l, t);
		sim_loop_call(t->fn, t->data);
		return;
	}
	l->posts = p->next;
	if (!l->posts)
		l->last = &l->posts;
	sim_loop_call(p->fn, p->data);
	free(p);
}

void sim_loop_kill(void)
{
	the_loop = NULL;
	lock_held = 0;
}

/* --- create and end a loop --- */

void loop_new(struct loop **ret)
{
	struct loop *l = new0(struct loop);

	l->last = &l->posts;
	l->last_job = &l->jobs;
	*ret = the_loop = l;
}

int loop_start(struct loop *loop)
{
	loop->started = true;
	return 0;
}

bool loop_stop(struct loop *loop)
{
	while (loop->posts || loop->n_working)
		sim_sleep(SIM_MS);
	while (loop->n_timers)
		timer_take(loop, loop->timers[0]);
	loop->closed = true;
	loop->started = false;
	return true;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	the_loop = NULL;
	free(loop->timers);
	free(loop);
}

void loop_ref(struct loop *loop)
{
	(void)loop;
}

void loop_unref(struct loop *loop)
{
	(void)loop;
}

void loop_post_or_drop(struct loop *loop, loop_fn fn, loop_fn drop, void *data)
{
	(void)drop;
	loop_post(loop, fn, data);
}

void loop_post(struct loop *loop, loop_fn fn, void *data)
{
	struct post *p = new0(struct post);

	p->fn = fn;
	p->data = data;
	*loop->last = p;
	loop->last = &p->next;
}

bool loop_is_here(const struct loop *loop)
{
	return in_loop && loop == the_loop;
}

/* --- timers --- */

void loop_timer_set(struct loop_timer *t, uint64_t ms)
{
	struct loop *l = t->loop;

	if (l->closed)
		return;
	assert(in_loop);
	if (t->position)
		timer_take(l, t);
	t->at = loop_now_ms() + ms;
	t->seq = ++l->seq;
	if (l->n_timers == l->max_timers) {
		l->max_timers = l->max_timers ? 2 * l->max_timers : 16;
		l->timers = mem_grow(l->timers, l->max_timers, sizeof(struct loop_timer *));
	}
	l->timers[l->n_timers++] = t;
	t->position = l->n_timers;
}

void loop_timer_stop(struct loop_timer *t)
{
	if (!t->position)
		return;
	assert(in_loop);
	timer_take(t->loop, t);
}

/* --- clocks --- */

int64_t sim_clock_ns(void)
{
	return (int64_t)EPOCH_S * 1000000000 + (int64_t)sim_now() * 1000;
}

int64_t loop_time_ns(void)
{
	return sim_clock_ns() + clock_step;
}

uint64_t loop_now_ms(void)
{
	return sim_now() / SIM_MS;
}

void sim_loop_step_clock(int64_t ns)
{
	clock_step += ns;
}

/* --- the pool --- */

static void worker(void *data)
{
	struct loop *l = data;
	struct job *j;

	while ((j = l->jobs)) {
		l->jobs = j->next;
		if (!l->jobs)
			l->last_job = &l->jobs;
		j->work(j->data);
		if (j->done)
			loop_post(l, j->done, j->data);
		free(j);
	}
	l->n_working--;
}

void loop_work(struct loop *loop, loop_fn work, loop_fn done, void *data)
{
	struct job *j = new0(struct job);

	assert(in_loop);
	*j = (struct job){work, done, data, NULL};
	*loop->last_job = j;
	loop->last_job = &j->next;
	if (loop->n_working == WORKERS)
		return;
	loop->n_working++;
	sim_task_start(SIM_OF_KXFS, worker, loop);
}

void loop_work_of_many(struct loop *loop, loop_fn work, loop_fn done, void *data)
{
	loop_work(loop, work, done, data);
}

/* --- waiting --- */

void wait_init(struct wait *e)
{
	*e = (struct wait){.lock = LOCK_INIT};
}

void wait_clear(struct wait *e)
{
	free(e->text);
}

void wait_set(struct wait *e, int err, const char *text)
{
	if (e->over)
		return;
	e->over = true;
	e->err = err;
	e->text = text ? text_copy(text) : NULL;
}

int wait_get(struct wait *e, unsigned seconds, char **ret_text)
{
	uint64_t until = sim_now() + seconds * SIM_S;

	while (!e->over && sim_now() < until)
		sim_sleep(SIM_MS);
	if (!e->over)
		return -ETIMEDOUT;
	if (ret_text)
		*ret_text = take_ptr(e->text);
	return e->err;
}

/* --- random --- */

int random_bytes(void *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		((unsigned char *)p)[i] = (unsigned char)sim_random(SIM_KXFS);
	return 0;
}

unsigned random_about(unsigned ms)
{
	return ms - ms / 4 + sim_below(SIM_KXFS, ms / 2 + 1);
}

int random_uuid(char ret[37])
{
	unsigned char b[16];

	int err = random_bytes(b, sizeof(b));

	spec_name_uuid(b, ret);
	return err;
}

int random_name(uint64_t *ret)
{
	char suffix[SPEC_SUFFIX_MAX];

	do {
		*ret = sim_random(SIM_KXFS);
		spec_name_suffix(*ret, suffix);
	} while (!spec_name_is_suffix(suffix));
	return 0;
}

/* --- messages --- */

void diag_setup(enum diag_level level, bool to_stderr)
{
	(void)level, (void)to_stderr;
}

bool diag_to_stderr(void)
{
	return false;
}

void diag(enum diag_level level, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list args;
	int err = errno;

	va_start(args, fmt);
	text = text_vprint(fmt, args);
	va_end(args);
	if (level < DIAG_DEBUG) {
		sim_of_world();

		sim_log("kxfs", "%s", text);
		gaps_reported(text);
		damage_reported(text);
	}
	errno = err;
}

char *diag_text(size_t *ret_len)
{
	*ret_len = 0;
	return text_copy("");
}

/* --- threads and libuv, which the simulator lacks --- */

struct thread {
	void *(*fn)(void *data);
	void *data;
};

static void run_thread(void *data)
{
	struct thread *t = data;

	t->fn(t->data);
	free(t);
}

/* Run a detached thread as a task. */
int thread_start(void *(*fn)(void *data), void *data, pthread_t *ret)
{
	struct thread *t = new0(struct thread);

	if (ret)
		sim_fail("kxfs starts a thread that is not detached");
	*t = (struct thread){fn, data};
	sim_task_start(SIM_OF_KXFS, run_thread, t);
	return 0;
}

uv_loop_t *loop_uv(struct loop *loop)
{
	(void)loop;
	sim_fail("kxfs uses libuv");
}

/* --- process.h, for the processes of kernel.c --- */

int process_stat(pid_t pid, struct process_stat *ret)
{
	*ret = (struct process_stat){.parent = 1, .signal = kernel_is_killed(pid) ? SIGKILL : 0};
	return 0;
}

unsigned long long process_clock(void)
{
	return 0;
}

int process_parse_stat(const char *text, struct process_stat *ret)
{
	(void)text, (void)ret;
	return -EINVAL;
}

char *process_user(uid_t uid)
{
	return NULL;
}

void process_boot(char ret[37])
{
	snprintf(ret, 37, "00000000-0000-4000-8000-%012u", sim_boots());
}

/* The simulator's descriptors are large numbers, so no limit applies to them. */
rlim_t process_allow_descriptors(void)
{
	return RLIM_INFINITY;
}

rlim_t process_given_descriptors(void)
{
	return 1024;
}

void process_limit_descriptors(rlim_t soft)
{
	(void)soft;
}
