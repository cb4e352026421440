/* SPDX-License-Identifier: MIT */
/*
 * Parked requests: a table from ticket to request under one leaf lock. Whoever takes the entry
 * out of the table owns the answer; that is the whole of "exactly once". Interrupts arrive on the
 * FUSE thread while libfuse holds a lock of the request, so they only post to the I/O thread. There a timer, which
 * runs only while something is parked, finds what has passed its deadline. It counts its own ticks and asks no clock:
 * while the machine or the I/O thread stands still nobody can be answered, and what came meanwhile is looked at
 * after the timer.
 */
#include <errno.h>
#include <uthash.h>

#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "fs/vfs/park.h"
#include "spec/base/mem.h"

/* How often deadlines are looked at. They are tens of seconds, so this is fine enough. */
#define PARK_TICK_MS 100

struct parked {
	uint64_t ticket;
	fuse_req_t req;
	struct park *park;
	enum park_kind kind;
	unsigned ticks; /* until its deadline; 0: it has none */
	bool live;	/* set once interrupts are to be posted; FUSE thread */
	bool early;	/* interrupted before that; FUSE thread */
	UT_hash_handle hh;
};

struct park {
	struct lock lock;
	struct parked *table;
	uint64_t next; /* ticket; FUSE thread */
	size_t count[PARK_N_KINDS];
	bool ended;
	struct loop *loop;
	struct loop_timer *tick; /* I/O thread */
	bool ticking;		 /* a tick is on its way or running; under the lock */
};

struct park *park_new(struct loop *loop)
{
	struct park *park = new0(struct park);

	park->lock = (struct lock)LOCK_INIT;
	park->loop = loop;
	park->next = 1;
	return park;
}

void park_free(struct park *park)
{
	if (!park)
		return;
	assert(!park->table);
	free(park);
}

/* Take the entry out of the table: from here on the caller alone may answer it. Under the lock. */
static struct parked *park_take(struct park *park, uint64_t ticket)
{
	struct parked *p;

	HASH_FIND(hh, park->table, &ticket, sizeof(ticket), p);
	if (p) {
		HASH_DEL(park->table, p);
		park->count[p->kind]--;
	}
	return p;
}

/* Waits until a running interrupt callback is through, so it must not be called under a lock. */
static fuse_req_t park_release(struct parked *p)
{
	fuse_req_t req = p->req;

	lock_assert_none();
	fuse_req_interrupt_func(req, NULL, NULL);
	free(p);
	return req;
}

fuse_req_t park_claim(struct park *park, uint64_t ticket)
{
	struct parked *p;

	{
		lock_scope(&park->lock);
		p = park_take(park, ticket);
	}
	return p ? park_release(p) : NULL;
}

bool park_waits(struct park *park, uint64_t ticket)
{
	struct parked *p;

	lock_scope(&park->lock);
	HASH_FIND(hh, park->table, &ticket, sizeof(ticket), p);
	return p;
}

struct park_interrupt {
	struct park *park;
	uint64_t ticket;
};

static void park_interrupted(void *data)
{
	struct park_interrupt *i = data;
	fuse_req_t req = park_claim(i->park, i->ticket);

	if (req)
		fuse_reply_err(req, EINTR);
	free(i);
}

/*
 * Called by libfuse on the FUSE thread, with the request's lock held: so it may only post. The
 * entry can't vanish meanwhile, since park_release waits for this to end.
 */
static void park_on_interrupt(fuse_req_t req, void *data)
{
	struct parked *p = data;
	struct park_interrupt *i;

	(void)req;
	if (!p->live) {
		p->early = true;
		return;
	}
	i = new0(struct park_interrupt);
	i->park = p->park;
	i->ticket = p->ticket;
	loop_post(p->park->loop, park_interrupted, i);
}

/* One tick more: the tickets whose time has come, at most MAX; false when nothing is parked any more. */
static bool park_expired(struct park *park, uint64_t *ret, size_t max, size_t *ret_n)
{
	struct parked *p, *next;

	lock_scope(&park->lock);
	*ret_n = 0;
	HASH_ITER(hh, park->table, p, next) {
		if (p->ticks > 1)
			p->ticks--;
		else if (p->ticks && *ret_n < max)
			ret[(*ret_n)++] = p->ticket;
	}
	if (!park->table)
		park->ticking = false;
	return park->table;
}

static void park_on_tick(void *data)
{
	struct park *park = data;
	uint64_t due[64];
	size_t n;

	if (!park_expired(park, due, array_size(due), &n)) {
		loop_timer_free(take_ptr(park->tick));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		fuse_req_t req = park_claim(park, due[i]);

		if (req)
			fuse_reply_err(req, ETIMEDOUT);
	}
}

static void park_start_tick(void *data)
{
	struct park *park = data;

	/* The last tick may have ended the ticking and a new request begun it again. */
	if (!park->tick)
		park->tick =
			loop_timer_new(park->loop, PARK_TICK_MS, PARK_TICK_MS, park_on_tick, park);
}

/* Put P into the table; from here on it may be gone at any moment. False: the mount ends. */
static bool park_insert(struct park *park, struct parked *p, bool *start)
{
	lock_scope(&park->lock);
	if (park->ended)
		return false;
	HASH_ADD(hh, park->table, ticket, sizeof(p->ticket), p);
	park->count[p->kind]++;
	*start = p->ticks && !park->ticking;
	if (*start)
		park->ticking = true;
	return true;
}

uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms)
{
	struct parked *p = new0(struct parked);
	uint64_t ticket = park->next++;
	bool start;

	p->ticket = ticket;
	p->req = req;
	p->park = park;
	p->kind = kind;
	p->ticks = deadline_ms ? deadline_ms / PARK_TICK_MS + 1 : 0;
	/* Interrupts are read by this thread, so one comes either here or after this function. */
	fuse_req_interrupt_func(req, park_on_interrupt, p);
	if (p->early) {
		fuse_reply_err(park_release(p), EINTR);
		return 0;
	}
	p->live = true;
	if (!park_insert(park, p, &start)) {
		fuse_reply_err(park_release(p), ENOTCONN);
		return 0;
	}
	if (start)
		loop_post(park->loop, park_start_tick, park);
	return ticket;
}

void park_end(struct park *park)
{
	struct parked *p, *next, *all;

	{
		lock_scope(&park->lock);
		park->ended = true;
		all = take_ptr(park->table);
		memset(park->count, 0, sizeof(park->count));
	}
	HASH_ITER(hh, all, p, next) {
		HASH_DEL(all, p);
		fuse_reply_err(park_release(p), ENOTCONN);
	}
}

size_t park_count(struct park *park, enum park_kind kind)
{
	lock_scope(&park->lock);
	return park->count[kind];
}
