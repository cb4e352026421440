/* SPDX-License-Identifier: MIT */
/*
 * The current snapshots. Each job known is an entry, found by uid, and by id within its place.
 * Each place also keeps its entries in an array ordered by creation, so that a listing is one pass;
 * a new job is nearly always the newest, so it is nearly always appended.
 */
#include "backend/store.h"

#include <errno.h>

#define HASH_NONFATAL_OOM 1
#include <uthash.h>

#include "backend/diag.h"
#include "backend/lock.h"

#define STORE_N_PLACES 2

struct store_entry {
	struct spec_job *job;
	char *id; /* own copies: the keys of the tables outlive a snapshot */
	char *uid;
	int64_t created; /* as first seen: its position in the list */
	enum backend_place place;
	UT_hash_handle hh;    /* by uid */
	UT_hash_handle hh_id; /* by id, in its place */
};

struct store_place {
	struct store_entry *by_id;
	struct store_entry **list;
	size_t n, room;
	int64_t changed;
};

struct store {
	const struct backend_events *events;
	struct lock lock; /* for all below */
	struct store_entry *by_uid;
	struct store_place place[STORE_N_PLACES];
};

int store_new(const struct backend_events *events, struct store **ret)
{
	struct store *store = calloc(1, sizeof(*store));

	if (!store)
		return -ENOMEM;
	store->events = events;
	store->lock = (struct lock)LOCK_INIT;
	for (size_t i = 0; i < STORE_N_PLACES; i++)
		store->place[i].changed = loop_time_ns();
	*ret = store;
	return 0;
}

static void store_entry_free(struct store_entry *e)
{
	if (!e)
		return;
	spec_job_unref(e->job);
	free(e->id);
	free(e->uid);
	free(e);
}

static void store_entry_freep(struct store_entry **e)
{
	store_entry_free(*e);
}

void store_free(struct store *store)
{
	struct store_entry *e, *next;

	if (!store)
		return;
	for (size_t i = 0; i < STORE_N_PLACES; i++) {
		HASH_CLEAR(hh_id, store->place[i].by_id);
		free(store->place[i].list);
	}
	HASH_ITER(hh, store->by_uid, e, next) {
		HASH_DEL(store->by_uid, e);
		store_entry_free(e);
	}
	free(store);
}

static struct store_entry *store_entry_new(struct spec_job *job)
{
	struct store_entry *e cleanup(store_entry_freep) = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	e->id = strdup(job->id);
	e->uid = strdup(job->uid);
	if (!e->id || !e->uid)
		return NULL;
	e->created = job->created;
	e->place = job->history ? BACKEND_HISTORY : BACKEND_JOBS;
	return take_ptr(e);
}

static int store_order(const struct store_entry *a, const struct store_entry *b)
{
	int c;

	if (a->created != b->created)
		return a->created < b->created ? -1 : 1;
	c = strcmp(a->id, b->id);
	return c ? c : strcmp(a->uid, b->uid);
}

/* Where E is in the list of P, or would be. */
static size_t store_position(const struct store_place *p, const struct store_entry *e)
{
	size_t low = 0, high = p->n;

	if (p->n > 0 && store_order(p->list[p->n - 1], e) < 0)
		return p->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (store_order(p->list[mid], e) < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static void store_touch(struct store_place *p)
{
	p->changed = max_of(loop_time_ns(), p->changed + 1);
}

/* Take E out of all tables. */
static void store_drop(struct store *store, struct store_entry *e)
{
	struct store_place *p = &store->place[e->place];
	size_t at = store_position(p, e);

	assert(at < p->n && p->list[at] == e);
	memmove(p->list + at, p->list + at + 1, (p->n - at - 1) * sizeof(struct store_entry *));
	p->n--;
	HASH_DELETE(hh_id, p->by_id, e);
	HASH_DELETE(hh, store->by_uid, e);
	store_touch(p);
}

/* Make room for one more in the list of P, in steps. */
static int store_reserve(struct store_place *p)
{
	size_t room = p->room ? 2 * p->room : 64;
	struct store_entry **list;

	if (p->n < p->room)
		return 0;
	list = reallocarray(p->list, room, sizeof(struct store_entry *));
	if (!list)
		return -ENOMEM;
	p->list = list;
	p->room = room;
	return 0;
}

/* Put E into all tables. -ENOMEM: it is in none. */
static int store_add(struct store *store, struct store_entry *e)
{
	struct store_place *p = &store->place[e->place];
	size_t at;

	if (store_reserve(p) < 0)
		return -ENOMEM;
	HASH_ADD_KEYPTR(hh, store->by_uid, e->uid, strlen(e->uid), e);
	if (!e->hh.tbl)
		return -ENOMEM;
	HASH_ADD_KEYPTR(hh_id, p->by_id, e->id, strlen(e->id), e);
	if (!e->hh_id.tbl) {
		HASH_DELETE(hh, store->by_uid, e);
		return -ENOMEM;
	}
	at = store_position(p, e);
	memmove(p->list + at + 1, p->list + at, (p->n - at) * sizeof(struct store_entry *));
	p->list[at] = e;
	p->n++;
	store_touch(p);
	return 0;
}

static struct store_entry *store_find_id(struct store *store, enum backend_place place,
					 const char *id)
{
	struct store_entry *e;

	HASH_FIND(hh_id, store->place[place].by_id, id, strlen(id), e);
	return e;
}

static struct store_entry *store_find_uid(struct store *store, const char *uid)
{
	struct store_entry *e;

	HASH_FIND(hh, store->by_uid, uid, strlen(uid), e);
	return e;
}

/*
 * Make FRESH's snapshot the current one of its uid. What nobody finds any more is handed out: the
 * uid's entry of the other place in *GONE, another job that had the id in *DISPLACED.
 * *OLD is the snapshot before.
 */
static int store_swap(struct store *store, struct store_entry **fresh, struct store_entry **gone,
		      struct store_entry **displaced, const struct spec_job **old)
{
	struct store_entry *f = *fresh;
	struct store_entry *e = store_find_uid(store, f->uid);
	struct store_entry *other = store_find_id(store, f->place, f->id);

	if (e && e->place == f->place) {
		assert(streq(e->id, f->id));
		*old = e->job;
		e->job = take_ptr(f->job);
		return 0;
	}
	if (e)
		f->created = e->created;
	/* A key may stand in a table twice for this moment: only so nothing changes on failure. */
	if (store_add(store, f) < 0)
		return -ENOMEM;
	*fresh = NULL;
	if (other)
		store_drop(store, other);
	*displaced = other;
	if (e) {
		store_drop(store, e);
		*old = take_ptr(e->job);
	}
	*gone = e;
	return 0;
}

static bool store_is_over(const struct spec_job *job)
{
	return spec_state_is_final(job->state) && !job->suspended;
}

/* For those who read .kxfs/log: a job has come to its end. */
static void store_say(const struct spec_job *old, const struct spec_job *now)
{
	if (!old || !now || store_is_over(old) || !store_is_over(now))
		return;
	diag(DIAG_INFO, "%s: %s%s%s%s%s", now->id, spec_state_name(now->state),
	     *now->reason ? ", " : "", now->reason, *now->message ? ": " : "", now->message);
}

static void store_tell(struct store *store, const struct spec_job *old,
		       const struct spec_job *new_job)
{
	lock_assert_none();
	store_say(old, new_job);
	if (store->events->job)
		store->events->job(store->events->data, old, new_job);
}

int store_put(struct store *store, struct spec_job *job)
{
	struct store_entry *fresh cleanup(store_entry_freep) = store_entry_new(job);
	struct store_entry *gone cleanup(store_entry_freep) = NULL;
	struct store_entry *displaced cleanup(store_entry_freep) = NULL;
	const struct spec_job *old cleanup_job = NULL;
	const struct spec_job *now cleanup_job = NULL;
	int err;

	if (!fresh)
		return -ENOMEM;
	fresh->job = job;
	{
		lock_scope(&store->lock);
		err = store_swap(store, &fresh, &gone, &displaced, &old);
	}
	if (err < 0) {
		fresh->job = NULL;
		return err;
	}
	now = spec_job_ref(job); /* a listener may put the next snapshot */
	if (displaced)
		store_tell(store, displaced->job, NULL);
	store_tell(store, old, now);
	return 0;
}

void store_remove(struct store *store, const char *uid)
{
	struct store_entry *e cleanup(store_entry_freep) = NULL;

	{
		lock_scope(&store->lock);
		e = store_find_uid(store, uid);
		if (!e)
			return;
		store_drop(store, e);
	}
	store_tell(store, e->job, NULL);
}

const struct spec_job *store_get(struct store *store, enum backend_place place, const char *id)
{
	struct store_entry *e;

	lock_scope(&store->lock);
	e = store_find_id(store, place, id);
	return e ? spec_job_ref(e->job) : NULL;
}

const struct spec_job *store_get_uid(struct store *store, const char *uid)
{
	struct store_entry *e;

	lock_scope(&store->lock);
	e = store_find_uid(store, uid);
	return e ? spec_job_ref(e->job) : NULL;
}

/* Fill LIST, which has room for ROOM. False: there are more; *N says how many. */
static bool store_fill(struct store *store, enum backend_place place, const struct spec_job **list,
		       size_t room, size_t *n)
{
	struct store_place *p = &store->place[place];

	lock_scope(&store->lock);
	*n = p->n;
	if (p->n > room)
		return false;
	for (size_t i = 0; i < p->n; i++)
		list[i] = spec_job_ref(p->list[i]->job);
	return true;
}

int store_list(struct store *store, enum backend_place place, const struct spec_job ***ret,
	       size_t *ret_n)
{
	size_t n = store_count(store, place);

	for (;;) {
		size_t room = n + n / 8 + 16;
		const struct spec_job **list = reallocarray(NULL, room, sizeof(struct spec_job *));

		if (!list)
			return -ENOMEM;
		if (store_fill(store, place, list, room, &n)) {
			*ret = list;
			*ret_n = n;
			return 0;
		}
		free(list);
	}
}

size_t store_count(struct store *store, enum backend_place place)
{
	lock_scope(&store->lock);
	return store->place[place].n;
}

int64_t store_changed(struct store *store, enum backend_place place)
{
	lock_scope(&store->lock);
	return store->place[place].changed;
}
