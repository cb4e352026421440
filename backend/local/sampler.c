/* SPDX-License-Identifier: MIT */
/* The thread samples and sleeps in turn, until this process exits. Under the lock it only copies figures. */
#include "backend/local/sampler.h"

#include <sys/resource.h>
#include <time.h>

#include "backend/base/lock.h"
#include "backend/base/thread.h"
#include "backend/local/descent.h"
#include "spec/base/mem.h"

#define FIRST_MS 100 /* until the first sample */
/*
 * Samples take at most 1/SHARE of the time; they cost about a fifth more than their own CPU time.
 */
#define SHARE 600
/*
 * Once a sample has cost more CPU time than this, later samples count shared pages in full
 * (descent_sample).
 */
#define DEAR_US 20000

struct sampler {
	struct lock lock;	 /* protects USAGE, the newest figures */
	struct task_usage usage; /* the newest figures */
	int64_t returned;	 /* number of the sample that sampler_news returned last */
	/* The members below belong to the thread: */
	bool shared; /* of shared pages, only this attempt's share is counted (descent_sample) */
	long own_maxrss; /* KiB that a child may have had before it became the program */
};

static int64_t clock_us(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

static void note_time(struct task_usage *u)
{
	/* The clock may have been set back. */
	u->last = max_of(clock_us(CLOCK_REALTIME) * 1000, u->first);
	if (!u->first)
		u->first = u->last;
}

/* Take in the peak memory of processes that have ended, and return their CPU time. */
static int64_t count_ended(const struct sampler *sampler, struct task_usage *u)
{
	struct rusage ended;

	getrusage(RUSAGE_CHILDREN, &ended);
	if (ended.ru_maxrss > sampler->own_maxrss)
		u->memory_peak = max_of(u->memory_peak, (int64_t)ended.ru_maxrss * 1024);
	return (ended.ru_utime.tv_sec + ended.ru_stime.tv_sec) * INT64_C(1000000) +
	       ended.ru_utime.tv_usec + ended.ru_stime.tv_usec;
}

/* Take one sample. Return how long to wait for the next one, in ms. */
static int64_t sampler_once(struct sampler *sampler, int64_t *seen_us)
{
	int64_t cost = clock_us(CLOCK_THREAD_CPUTIME_ID), now, ended_us, was_us;
	struct task_usage u = sampler->usage; /* no other thread writes it */
	struct descent all;
	bool known = descent_sample(sampler->shared, &all);

	ended_us = count_ended(sampler, &u);
	now = clock_us(CLOCK_MONOTONIC);
	cost = clock_us(CLOCK_THREAD_CPUTIME_ID) - cost;
	sampler->shared = sampler->shared && cost < DEAR_US;
	if (known) {
		note_time(&u);
		was_us = u.cpu_us;
		/* A process that ended meanwhile may be missing in both sums. */
		u.cpu_us = max_of(u.cpu_us, ended_us + all.cpu_us);
		if (u.samples++ && now > *seen_us)
			u.cpu_now = (u.cpu_us - was_us) * 1000 / (now - *seen_us);
		u.memory_now = all.memory;
		u.memory_peak = max_of(u.memory_peak, all.memory);
		*seen_us = now;
		lock_scope(&sampler->lock);
		sampler->usage = u;
	}
	return max_of((int64_t)SAMPLER_PAUSE_MS, cost * SHARE / 1000);
}

static void *sampler_main(void *data)
{
	int64_t ms = FIRST_MS, seen_us = 0;

	for (;;) {
		const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

		nanosleep(&pause, NULL);
		ms = sampler_once(data, &seen_us);
	}
	return NULL;
}

struct sampler *sampler_new(void)
{
	struct sampler *sampler = new0(struct sampler);
	struct rusage own;

	getrusage(RUSAGE_SELF, &own);
	*sampler = (struct sampler){
		.lock = LOCK_INIT,
		.usage = {.cpu_now = -1, .memory_now = -1, .memory_peak = -1},
		.shared = true,
		.own_maxrss = own.ru_maxrss,
	};
	return sampler;
}

void sampler_begin(struct sampler *sampler)
{
	(void)thread_start(sampler_main, sampler, NULL);
}

bool sampler_news(struct sampler *sampler, struct task_usage *ret)
{
	lock_scope(&sampler->lock);
	*ret = sampler->usage;
	if (ret->samples == sampler->returned)
		return false;
	sampler->returned = ret->samples;
	return true;
}

void sampler_end(struct sampler *sampler, struct task_usage *ret)
{
	sampler_news(sampler, ret);
	ret->cpu_us = count_ended(sampler, ret);
	note_time(ret);
}
