/* SPDX-License-Identifier: MIT */
/*
 * The table of parked requests, indexed by ticket. The thread that removes a request from the
 * table, or marks a held request as answered, answers it.
 *
 * libfuse reports an interrupt on the FUSE thread, with a lock of the request held. So the
 * interrupt handler only queues the answer, and park's own thread sends it. fuse_req_interrupt_func
 * requires this order: remove the request under park's lock, unlock, clear the interrupt function,
 * reply.
 *
 * A deadline is a number of ticks, because nobody can answer while the machine is suspended. A
 * suspension of any length counts as at most one tick.
 */
#include <errno.h>
#include <linux/fuse.h>
#include <time.h>
#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/thread.h"
#include "fs/vfs/park.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"

#define PARK_TICK_MS 50
/* Ticks until a held request gets ETIMEDOUT (10 s). */
#define PARK_HELD_TICKS (10000 / PARK_TICK_MS)

struct parked {
	uint64_t ticket;
	fuse_req_t req;
	/* the kernel's number of a held request; 0 for other requests */
	uint64_t unique;
	int fd;
	struct park *park;
	enum park_kind kind;
	unsigned ticks; /* until the deadline; 0 if there is none. Under the lock */
	/* false until the insertion; meanwhile an interrupt only sets EARLY. FUSE thread */
	bool live;
	bool early;
	bool answered; /* true if park has answered this held request. Under the lock */
	UT_hash_handle hh;
};

/* An answer for park's thread to send. */
struct park_answer {
	uint64_t ticket; /* if 0, call park->hangs instead of answering */
	int err;
	struct park_answer *prev, *next;
};

struct park {
	uint64_t next; /* the next ticket. FUSE thread */
	void (*hangs)(void *data);
	void *hangs_data;
	pthread_t thread;
	bool started;
	struct lock lock;
	pthread_cond_t wakeup;
	/* Under the lock: */
	struct parked *table;
	struct park_answer *answers;
	size_t count[PARK_N_KINDS];
	bool ticking;
	bool ended; /* true after park_end */
	bool over;  /* true after park_stop: the thread must end */
};

struct park *park_new(void)
{
	struct park *park = new0(struct park);
	pthread_condattr_t attr;

	park->lock = (struct lock)LOCK_INIT;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&park->wakeup, &attr);
	pthread_condattr_destroy(&attr);
	park->next = 1;
	return park;
}

static struct parked *park_find(struct park *park, uint64_t ticket)
{
	struct parked *p;

	HASH_FIND(hh, park->table, &ticket, sizeof(ticket), p);
	return p;
}

static void park_remove(struct park *park, struct parked *p)
{
	HASH_DEL(park->table, p);
	park->count[p->kind]--;
}

/* Return the FUSE request and free P. Hold no lock: this waits for interrupt callbacks. */
static fuse_req_t park_release(struct parked *p)
{
	fuse_req_t req = p->req;

	lock_assert_none();
	fuse_req_interrupt_func(req, NULL, NULL);
	free(p);
	return req;
}

/*
 * Answer the request of TICKET with ERR, unless it was answered. The handler of a held request may
 * free the libfuse request at any moment. So leave a held request in the table, and reply to the
 * FUSE device; the kernel then rejects the handler's own answer.
 */
static void park_answer(struct park *park, uint64_t ticket, int err)
{
	struct fuse_out_header out = {.len = sizeof(out), .error = -err};
	struct parked *p;
	int fd = -1;

	{
		lock_scope(&park->lock);
		p = park_find(park, ticket);
		if (!p || p->answered)
			return;
		if (p->unique) {
			p->answered = true;
			out.unique = p->unique;
			fd = p->fd;
		} else {
			park_remove(park, p);
		}
	}
	if (!out.unique)
		fuse_reply_err(park_release(p), err);
	else if (write(fd, &out, sizeof(out)) < 0 && errno != ENOENT)
		diag(DIAG_DEBUG, "/dev/fuse: %m");
}

fuse_req_t park_claim(struct park *park, uint64_t ticket)
{
	struct parked *p;
	bool answered = false;
	fuse_req_t req;

	{
		lock_scope(&park->lock);
		p = park_find(park, ticket);
		if (p) {
			answered = p->answered;
			park_remove(park, p);
		}
	}
	req = p ? park_release(p) : NULL;
	return answered ? NULL : req;
}

bool park_waits(struct park *park, uint64_t ticket)
{
	lock_scope(&park->lock);
	return park_find(park, ticket);
}

/* Let park's thread answer TICKET with ERR. The caller holds the lock. */
static void park_note(struct park *park, uint64_t ticket, int err)
{
	struct park_answer *a = new0(struct park_answer);

	a->ticket = ticket;
	a->err = err;
	DL_APPEND(park->answers, a);
	pthread_cond_signal(&park->wakeup);
}

/* libfuse holds the request's lock here. park_release waits for this call, so P stays valid. */
static void park_on_interrupt(fuse_req_t req, void *data)
{
	struct parked *p = data;

	if (!p->live) {
		p->early = true;
		return;
	}
	lock_scope(&p->park->lock);
	park_note(p->park, p->ticket, EINTR);
}

/* Count a tick, and queue ETIMEDOUT for requests that expire. The caller holds the lock. */
static void park_tick(struct park *park)
{
	struct parked *p, *next;
	bool hangs = false;

	park->ticking = false;
	HASH_ITER(hh, park->table, p, next) {
		hangs |= p->unique && p->ticks && p->ticks <= PARK_HELD_TICKS;
		if (p->ticks == 1)
			park_note(park, p->ticket, ETIMEDOUT);
		p->ticks -= p->ticks > 0;
		park->ticking |= p->ticks > 0;
	}
	if (hangs)
		park_note(park, 0, 0);
}

static struct timespec park_tick_after_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return spec_time_spec(spec_time_of(t) + PARK_TICK_MS * 1000000L);
}

/* Return the next queued answer, or NULL if the thread must end. Count ticks while waiting. */
static struct park_answer *park_wait(struct park *park, struct timespec *next_tick)
{
	struct park_answer *a;

	lock_scope(&park->lock);
	while (!park->answers && !park->over) {
		if (!park->ticking) {
			pthread_cond_wait(&park->wakeup, &park->lock.mutex);
			*next_tick = park_tick_after_now();
		} else if (pthread_cond_timedwait(&park->wakeup, &park->lock.mutex, next_tick) ==
			   ETIMEDOUT) {
			park_tick(park);
			*next_tick = park_tick_after_now();
		}
	}
	a = park->answers;
	if (a)
		DL_DELETE(park->answers, a);
	return a;
}

static void *park_run(void *data)
{
	struct park *park = data;
	struct timespec next_tick = park_tick_after_now();
	struct park_answer *a;

	while ((a = park_wait(park, &next_tick))) {
		if (a->ticket)
			park_answer(park, a->ticket, a->err);
		else
			park->hangs(park->hangs_data);
		free(a);
	}
	return NULL;
}

int park_start(struct park *park)
{
	int err = thread_start(park_run, park, &park->thread);

	park->started = err == 0;
	return err;
}

void park_stop(struct park *park)
{
	if (!park->started)
		return;
	park->started = false;
	{
		lock_scope(&park->lock);
		park->over = true;
		pthread_cond_signal(&park->wakeup);
	}
	pthread_join(park->thread, NULL);
}

void park_free(struct park *park)
{
	if (!park)
		return;
	assert(!park->table);
	park_stop(park);
	pthread_cond_destroy(&park->wakeup);
	free(park);
}

/* Insert P, which another thread may then free. Return false if the mount is ending. */
static bool park_insert(struct park *park, struct parked *p)
{
	lock_scope(&park->lock);
	HASH_ADD(hh, park->table, ticket, sizeof(p->ticket), p);
	park->count[p->kind]++;
	if (p->ticks && !park->ticking) {
		park->ticking = true;
		pthread_cond_signal(&park->wakeup);
	}
	return !park->ended;
}

/*
 * Park REQ as P, and return the ticket. The caller has set TICKS, UNIQUE and FD. If REQ was
 * answered immediately, return 0. But for a held REQ always return the ticket, because its handler
 * must claim it.
 */
static uint64_t park_one(struct park *park, struct parked *p, fuse_req_t req, enum park_kind kind)
{
	uint64_t ticket = park->next++;
	bool held = p->unique, early;

	p->ticket = ticket;
	p->req = req;
	p->park = park;
	p->kind = kind;
	/*
	 * This thread holds the session lock, and only its holder processes interrupts. So libfuse
	 * calls park_on_interrupt either here, or after park_one has returned.
	 */
	fuse_req_interrupt_func(req, park_on_interrupt, p);
	early = p->early;
	p->live = true;
	if (park_insert(park, p) && !early)
		return ticket;
	park_answer(park, ticket, early ? EINTR : ENOTCONN);
	return held ? ticket : 0;
}

uint64_t park_add(struct park *park, fuse_req_t req, enum park_kind kind, unsigned deadline_ms)
{
	struct parked *p = new0(struct parked);

	p->ticks = deadline_ms ? deadline_ms / PARK_TICK_MS + 1 : 0;
	return park_one(park, p, req, kind);
}

uint64_t park_hold(struct park *park, fuse_req_t req, int fd, uint64_t unique)
{
	struct parked *p = new0(struct parked);

	p->ticks = PARK_HELD_TICKS + 1;
	p->unique = unique;
	p->fd = fd;
	return park_one(park, p, req, PARK_DISK);
}

void park_when_held(struct park *park, void (*hangs)(void *data), void *data)
{
	park->hangs = hangs;
	park->hangs_data = data;
}

/* Refuse new requests. Return the ticket of an unanswered request, or 0. */
static uint64_t park_unanswered(struct park *park)
{
	const struct parked *p;

	lock_scope(&park->lock);
	park->ended = true;
	for (p = park->table; p && p->answered; p = p->hh.next)
		;
	return p ? p->ticket : 0;
}

void park_end(struct park *park)
{
	uint64_t ticket;

	while ((ticket = park_unanswered(park)))
		park_answer(park, ticket, ENOTCONN);
}

size_t park_count(struct park *park, enum park_kind kind)
{
	lock_scope(&park->lock);
	return park->count[kind];
}
