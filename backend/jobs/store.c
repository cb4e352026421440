/* SPDX-License-Identifier: MIT */
/*
 * The store; see store.h. Each place (jobs/ or history/) has an array of its entries, sorted by
 * creation time, so that a listing is a single pass. A new job is usually the newest, at the
 * array's end.
 */
#include "backend/jobs/store.h"

#include <assert.h>
#include <limits.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "spec/base/mem.h"
#include "spec/base/key_table.h"

struct store_entry {
	struct spec_job *job;
	int64_t created; /* as in the first snapshot; constant, because LIST is sorted by it */
	enum backend_place place;
	bool has_alias; /* the entry is also in ALIASES */
};

struct store_place {
	struct key_table by_id;
	struct store_entry **list;
	size_t n;
	int64_t changed;
	uint64_t revision; /* the store's REVISION at the last change in this place */
};

struct store {
	struct store_events events;
	struct lock lock;  /* protects all members below */
	uint64_t revision; /* counts all changes */
	struct key_table by_uid;
	/* by the submission's UUID: jobs that were submitted here and have another uid */
	struct key_table aliases;
	struct store_place place[BACKEND_N_PLACES];
};

static const char *store_id_of(const void *item)
{
	const struct store_entry *e = item;

	return e->job->id;
}

static const char *store_uid_of(const void *item)
{
	const struct store_entry *e = item;

	return e->job->uid;
}

static const char *store_submission_of(const void *item)
{
	const struct store_entry *e = item;

	return e->job->submission;
}

struct store *store_new(const struct store_events *events)
{
	struct store *store = new0(struct store);

	store->events = *events;
	store->lock = (struct lock)LOCK_INIT;
	store->by_uid = (struct key_table){.key = store_uid_of};
	store->aliases = (struct key_table){.key = store_submission_of};
	for (size_t i = 0; i < BACKEND_N_PLACES; i++) {
		store->place[i].by_id = (struct key_table){.key = store_id_of};
		store->place[i].changed = loop_time_ns();
	}
	return store;
}

static void store_entry_free(struct store_entry *e)
{
	if (!e)
		return;
	spec_job_unref(e->job);
	free(e);
}

define_cleanup(store_entry_freep, struct store_entry *, store_entry_free)

void store_free(struct store *store)
{
	if (!store)
		return;
	for (size_t i = 0; i < BACKEND_N_PLACES; i++) {
		struct store_place *p = &store->place[i];

		for (size_t k = 0; k < p->n; k++)
			store_entry_free(p->list[k]);
		free(p->list);
		key_table_clear(&p->by_id);
	}
	key_table_clear(&store->by_uid);
	key_table_clear(&store->aliases);
	free(store);
}

static int store_order(const struct store_entry *a, const struct store_entry *b)
{
	int c;

	if (a->created != b->created)
		return a->created < b->created ? -1 : 1;
	c = strcmp(a->job->id, b->job->id);
	return c ? c : strcmp(a->job->uid, b->job->uid);
}

/* Return the position of E in the list of P, or the position at which E must be inserted. */
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

/* Return the new revision after a change in PLACE. */
static uint64_t store_revise(struct store *store, enum backend_place place)
{
	return store->place[place].revision = ++store->revision;
}

/* Remove E from the tables of its place, but not from BY_UID or ALIASES. */
static void store_unlist(struct store *store, struct store_entry *e)
{
	struct store_place *p = &store->place[e->place];
	size_t at = store_position(p, e);

	assert(at < p->n && p->list[at] == e);
	memmove(p->list + at, p->list + at + 1, (p->n - at - 1) * sizeof(struct store_entry *));
	p->n--;
	key_table_remove(&p->by_id, e);
	store_touch(p);
}

static void store_enlist(struct store *store, struct store_entry *e)
{
	struct store_place *p = &store->place[e->place];
	size_t at = store_position(p, e);

	p->list = mem_more(p->list, p->n, sizeof(struct store_entry *));
	memmove(p->list + at + 1, p->list + at, (p->n - at) * sizeof(struct store_entry *));
	p->list[at] = e;
	p->n++;
	key_table_add(&p->by_id, e);
	store_touch(p);
}

static void store_remove_alias(struct store *store, struct store_entry *e)
{
	if (e->has_alias)
		key_table_remove(&store->aliases, e);
	e->has_alias = false;
}

/*
 * Let store_find_uid also find E by the UUID of its submission. Do nothing if ALIASES already has
 * an entry for this UUID.
 */
static void store_add_alias(struct store *store, struct store_entry *e)
{
	const char *submission = e->job->submission;

	if (!e->job->own || !*submission || streq(submission, e->job->uid) ||
	    key_table_find(&store->aliases, submission))
		return;
	key_table_add(&store->aliases, e);
	e->has_alias = true;
}

static void store_drop(struct store *store, struct store_entry *e)
{
	store_unlist(store, e);
	key_table_remove(&store->by_uid, e);
	store_remove_alias(store, e);
	store_revise(store, e->place);
}

/* Replace E's snapshot by JOB, which may have another id. Return the old snapshot. */
static struct spec_job *store_set_job(struct store *store, struct store_entry *e,
				      struct spec_job *job)
{
	struct spec_job *old = e->job;
	const bool same = streq(old->id, job->id);

	if (!same)
		store_unlist(store, e);
	store_remove_alias(store, e);
	e->job = job;
	store_add_alias(store, e);
	if (!same)
		store_enlist(store, e);
	job->revision = store_revise(store, e->place);
	return old;
}

static struct store_entry *store_find_id(struct store *store, enum backend_place place,
					 const char *id)
{
	return key_table_find(&store->place[place].by_id, id);
}

static struct store_entry *store_find_uid(struct store *store, const char *uid)
{
	struct store_entry *e = key_table_find(&store->by_uid, uid);

	return e ? e : key_table_find(&store->aliases, uid);
}

/* --- names --- */

#define UID_SHORT 8

/* Set RET to UID8: at most 8 characters of UID, up to the first one that an id must not have. */
static void store_short(const char *uid, char ret[UID_SHORT + 1])
{
	static const char plain[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-";

	snprintf(ret, UID_SHORT + 1, "%.*s", (int)min_of(strspn(uid, plain), (size_t)UID_SHORT),
		 uid);
}

/* Return JOB's id without the suffix ~UID8 that an earlier mount may have added, malloc'ed. */
static char *store_plain(const struct spec_job *job)
{
	char uid8[UID_SHORT + 1];
	const char *tail = strrchr(job->id, '~');

	store_short(job->uid, uid8);
	return tail && tail > job->id && streq(tail + 1, uid8)
		       ? text_print("%.*s", (int)(tail - job->id), job->id)
		       : text_copy(job->id);
}

/* Return ID~UID8 for JOB, malloc'ed. If this is the id of a job in PLACE, append a number. */
static char *store_other(struct store *store, enum backend_place place, const char *id,
			 const struct spec_job *job)
{
	char uid8[UID_SHORT + 1], tail[32];
	char *ret;

	store_short(job->uid, uid8);
	snprintf(tail, sizeof(tail), "~%s", uid8);
	for (unsigned i = 2;; i++) {
		ret = text_print("%.*s%s", (int)(NAME_MAX - strlen(tail)), id, tail);
		if (!store_find_id(store, place, ret))
			return ret;
		free(ret);
		snprintf(tail, sizeof(tail), "~%s~%u", uid8, i);
	}
}

static struct spec_job *store_named(const struct spec_job *job, const char *id)
{
	struct spec_job *copy = spec_job_copy(job);

	spec_set(&copy->id, id);
	return spec_job_pack(copy);
}

/* A job that was renamed because another job got its id. */
struct store_renamed {
	const struct spec_job *old, *now;
};

static void store_rename(struct store *store, struct store_entry *e, struct store_renamed *ret)
{
	cleanup_free char *id = store_other(store, e->place, e->job->id, e->job);

	ret->old = store_set_job(store, e, store_named(e->job, id));
	ret->now = spec_job_ref(e->job);
}

/* Set the id of F's job. F must not be in a table. */
static void store_set_id(struct store_entry *f, const char *id)
{
	struct spec_job *named;

	if (streq(f->job->id, id))
		return;
	named = store_named(f->job, id);
	spec_job_unref(f->job);
	f->job = named;
}

/*
 * Choose the id of the new entry F. Return another entry that must be renamed, or NULL. In jobs/, F
 * gets its plain id, because a cluster has only one job of each name.
 */
static struct store_entry *store_name(struct store *store, struct store_entry *f)
{
	cleanup_free char *plain = store_plain(f->job);
	struct store_entry *e = store_find_id(store, f->place, plain);
	cleanup_free char *other = NULL;
	bool newer = !e || f->place == BACKEND_JOBS || f->job->created > e->job->created ||
		     (f->job->created == e->job->created && strcmp(f->job->uid, e->job->uid) > 0);

	if (!newer)
		other = store_other(store, f->place, plain, f->job);
	store_set_id(f, newer ? plain : other);
	return newer ? e : NULL;
}

/*
 * Set the id of F, whose snapshot will replace that of E in the same place. In history/, F gets the
 * id of E. In jobs/, F keeps its id, and a third job that has this id is renamed.
 */
static void store_keep_id(struct store *store, struct store_entry *e, struct store_entry *f,
			  struct store_renamed *renamed)
{
	struct store_entry *other = store_find_id(store, f->place, f->job->id);

	if (f->place != BACKEND_JOBS || other == e)
		store_set_id(f, e->job->id);
	else if (other)
		store_rename(store, other, renamed);
}

/*
 * Make the snapshot of *FRESH the current snapshot of its job, and set *OLD to the previous
 * snapshot. If the job has an entry in the other place, or another uid, remove that entry and set
 * *GONE to it. If another job had to be renamed, set *RENAMED to it.
 */
static void store_swap(struct store *store, struct store_entry **fresh, struct store_entry **gone,
		       struct store_renamed *renamed, const struct spec_job **old)
{
	struct store_entry *f = *fresh;
	const char *submission = f->job->own ? f->job->submission : "";
	struct store_entry *e = key_table_find(&store->by_uid, f->job->uid);

	if (!e) /* until now, the job may have been held under another uid */
		e = key_table_find(&store->by_uid, submission);
	if (e && e->place == f->place && streq(e->job->uid, f->job->uid)) {
		store_keep_id(store, e, f, renamed);
		*old = store_set_job(store, e, take_ptr(f->job));
		return;
	}
	if (e) {
		f->created = e->created;
		store_drop(store, e);
		*old = spec_job_ref(e->job);
	}
	*gone = e;
	e = store_name(store, f);
	if (e)
		store_rename(store, e, renamed);
	f->job->revision = store_revise(store, f->place);
	key_table_add(&store->by_uid, f);
	store_enlist(store, f);
	store_add_alias(store, take_ptr(*fresh));
}

static void store_notify(struct store *store, const struct spec_job *old,
			 const struct spec_job *now)
{
	lock_assert_none();
	if (old && now && !spec_job_has_ended(old) && spec_job_has_ended(now))
		diag(DIAG_INFO, "%s: %s%s%s%s%s", now->id, spec_state_name(now->state),
		     *now->reason ? ", " : "", now->reason, *now->message ? ": " : "",
		     now->message);
	if (store->events.changed)
		store->events.changed(store->events.data, old, now);
}

void store_put(struct store *store, struct spec_job *job)
{
	struct store_entry *fresh cleanup(store_entry_freep) = new0(struct store_entry);
	struct store_entry *gone cleanup(store_entry_freep) = NULL;
	struct store_renamed renamed = {0};
	const struct spec_job *old cleanup_job = NULL;
	const struct spec_job *now cleanup_job = NULL;
	cleanup_free char *uid = text_copy(job->uid);

	fresh->job = job;
	fresh->created = job->created;
	fresh->place = job->history ? BACKEND_HISTORY : BACKEND_JOBS;
	{
		lock_scope(&store->lock);
		store_swap(store, &fresh, &gone, &renamed, &old);
		now = spec_job_ref(store_find_uid(store, uid)->job);
	}
	if (renamed.old)
		store_notify(store, renamed.old, renamed.now);
	spec_job_unref(renamed.old);
	spec_job_unref(renamed.now);
	store_notify(store, old, now);
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
	store_notify(store, e->job, NULL);
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

void store_list(struct store *store, enum backend_place place, struct store_jobs *ret)
{
	const struct store_place *p = &store->place[place];

	lock_scope(&store->lock);
	*ret = (struct store_jobs){new0_n(const struct spec_job *, p->n), p->n};
	for (size_t i = 0; i < p->n; i++)
		ret->v[i] = spec_job_ref(p->list[i]->job);
}

void store_jobs_clear(struct store_jobs *jobs)
{
	for (size_t i = 0; i < jobs->n; i++)
		spec_job_unref(jobs->v[i]);
	free(jobs->v);
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

uint64_t store_revision(struct store *store, enum backend_place place)
{
	lock_scope(&store->lock);
	return store->place[place].revision;
}
