/* SPDX-License-Identifier: MIT */
/*
 * The pool starts a thread when there is work and no thread is idle, up to the usual number. Beyond
 * that it starts one at a time while all threads hang. An idle thread beyond the usual number ends.
 * The threads refer to the pool, and the last one frees it.
 */
#include "backend/base/pool.h"

#include "backend/base/lock.h"
#include "backend/base/thread.h"
#include "spec/base/mem.h"

/* As many threads as libuv's pool has: more would not make a disk faster, and each costs memory. */
#define POOL_USUAL 4
/*
 * When this many calls hang at the same time, the whole disk hangs, and another thread would not
 * help.
 */
#define POOL_MOST 64

struct queue {
	struct pool_job *first, **last;
};

struct pool {
	struct lock lock;
	pthread_cond_t wake;
	/* All members below are under the lock. */
	struct queue queues[2]; /* waiting jobs; [true]: those with OF_MANY */
	bool of_many;		/* the queue to check first the next time */
	unsigned waiting;	/* number of waiting jobs */
	unsigned n, idle;	/* threads */
	/* Jobs started so far, and those started before the last pool_check. */
	uint64_t begun, seen;
	bool over;
};

void pool_new(struct pool **ret)
{
	struct pool *p = new0(struct pool);

	p->lock = (struct lock)LOCK_INIT;
	pthread_cond_init(&p->wake, NULL);
	for (unsigned i = 0; i < array_size(p->queues); i++)
		p->queues[i].last = &p->queues[i].first;
	*ret = p;
}

static void pool_free(struct pool *p)
{
	pthread_cond_destroy(&p->wake);
	free(p);
}

/* Take the next job. NULL: this thread must end; *LAST: it is the last thread of an ended pool. */
static struct pool_job *pool_take(struct pool *p, bool *last)
{
	struct pool_job *job;
	struct queue *q;

	lock_scope(&p->lock);
	while (!p->waiting && !p->over && p->idle < POOL_USUAL) {
		p->idle++;
		pthread_cond_wait(&p->wake, &p->lock.mutex);
		p->idle--;
	}
	q = &p->queues[p->queues[p->of_many].first ? p->of_many : !p->of_many];
	job = p->over ? NULL : q->first;
	if (!job) {
		p->n--;
		*last = p->over && p->n == 0;
		return NULL;
	}
	q->first = job->next;
	if (!q->first)
		q->last = &q->first;
	p->of_many = !job->of_many;
	p->waiting--;
	p->begun++;
	return job;
}

static void *pool_main(void *data)
{
	struct pool *p = data;
	struct pool_job *job;
	bool last = false;

	while ((job = pool_take(p, &last)))
		job->run(job);
	if (last)
		pool_free(p);
	return NULL;
}

/* Start the thread that P->N already counts. If that fails, pool_check tries again. */
static void start_thread(struct pool *p)
{
	if (thread_start(pool_main, p, NULL) == 0)
		return;
	lock_scope(&p->lock);
	p->n--;
}

void pool_add(struct pool *p, struct pool_job *job)
{
	struct queue *q = &p->queues[job->of_many];
	bool more;

	job->next = NULL;
	{
		lock_scope(&p->lock);
		*q->last = job;
		q->last = &job->next;
		more = ++p->waiting > p->idle && p->n < POOL_USUAL;
		p->n += more;
		pthread_cond_signal(&p->wake);
	}
	if (more)
		start_thread(p);
}

bool pool_check(struct pool *p)
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

void pool_end(struct pool *p)
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
