/* SPDX-License-Identifier: MIT */
/* The table of verdicts; see verdict.h. */
#include "fs/submit/verdict.h"

#include <errno.h>
#include <uthash.h>

#include "backend/base/lock.h"
#include "backend/base/loop.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"

struct verdict {
	char *name; /* that it is about */
	char *job;  /* id; NULL: none */
	int64_t job_time;
	uint64_t job_number; /* of the launch that made JOB */
	char *error;	     /* NULL: none */
	int64_t error_time;
	uint64_t number; /* of the last launch that ended */
	struct record_owner owner;
	unsigned under_way; /* launches; after a start, 1: the last mount left one */
	int64_t since; /* when the first of them was recorded, by the disk's clock; 0: it is not, yet */
	char *launched; /* id of the newest job that the backend reported at the start; NULL: none */
	int64_t launched_time;
	UT_hash_handle hh;
};

struct verdicts {
	struct lock lock;
	struct verdict *table;
	uint64_t number; /* of the last launch */
	int64_t changed;
	struct record_owner us; /* constant */
};

struct verdicts *verdicts_new(struct record_owner us)
{
	struct verdicts *all = new0(struct verdicts);

	all->lock = (struct lock)LOCK_INIT;
	all->us = us;
	return all;
}

/* --- under the lock --- */

static struct verdict *verdict_find(struct verdicts *all, const char *name)
{
	struct verdict *v;

	HASH_FIND_STR(all->table, name, v);
	return v;
}

static struct verdict *verdict_make(struct verdicts *all, const char *name)
{
	struct verdict *v = verdict_find(all, name);

	if (v)
		return v;
	v = new0(struct verdict);
	v->name = text_copy(name);
	v->owner = all->us;
	HASH_ADD_KEYPTR(hh, all->table, v->name, strlen(v->name), v);
	return v;
}

static char **verdict_text(struct verdict *v, enum submit_name kind)
{
	return kind == SUBMIT_NAME_JOB ? &v->job : &v->error;
}

static void verdict_free(struct verdicts *all, struct verdict *v)
{
	HASH_DEL(all->table, v);
	free(v->name);
	free(v->job);
	free(v->error);
	free(v->launched);
	free(v);
}

static void verdict_free_empty(struct verdicts *all, struct verdict *v)
{
	all->changed = loop_time_ns();
	if (!v->job && !v->error && !v->under_way && !v->launched)
		verdict_free(all, v);
}

static void verdict_set_job(struct verdict *v, const char *id, int64_t time)
{
	text_set(&v->job, "%s", id);
	v->job_time = time;
}

/* --- all --- */

void verdicts_free(struct verdicts *all)
{
	struct verdict *v, *next;

	if (!all)
		return;
	HASH_ITER(hh, all->table, v, next)
		verdict_free(all, v);
	free(all);
}

bool verdicts_room(struct verdicts *all)
{
	lock_scope(&all->lock);
	return HASH_COUNT(all->table) < VERDICTS_MAX;
}

int64_t verdicts_changed(struct verdicts *all)
{
	lock_scope(&all->lock);
	return all->changed;
}

uint64_t verdicts_next(struct verdicts *all)
{
	lock_scope(&all->lock);
	return ++all->number;
}

/* --- what becomes of a launch --- */

void verdict_begin(struct verdicts *all, const char *name, struct record_owner owner)
{
	struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_make(all, name);
	v->under_way++;
	if (!v->job && !v->error)
		v->owner = owner;
}

void verdict_end(struct verdicts *all, const char *name)
{
	struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_find(all, name);
	if (!v || !v->under_way)
		return;
	v->under_way--;
	if (!v->under_way)
		v->since = 0;
	verdict_free_empty(all, v);
}

void verdict_accepted(struct verdicts *all, const char *name, uint64_t number, const char *id,
		      struct record_owner owner)
{
	struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_make(all, name);
	if (number > v->job_number) {
		verdict_set_job(v, id, loop_time_ns());
		v->job_number = number;
		v->owner = owner;
	}
	if (number > v->number) {
		free(take_ptr(v->error));
		v->number = number;
	}
	all->changed = loop_time_ns();
}

/* TEXT as NAME.error shows it: clean, bounded, and whole lines. malloc'ed. */
static char *verdict_error_text(const char *text)
{
	char *clean cleanup_free = spec_utf8_clean_copy(text, "\n\t");
	size_t len = strnlen(clean, RECORD_MAX_ERROR - strlen("...\n"));
	const char *end = len > 0 && clean[len - 1] == '\n' ? "" : "\n";

	if (clean[len])
		end = "...\n";
	return text_print("%.*s%s", (int)len, clean, end);
}

void verdict_refused(struct verdicts *all, const char *name, uint64_t number, const char *error,
		     struct record_owner owner)
{
	char *text cleanup_free = verdict_error_text(error);
	struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_make(all, name);
	all->changed = loop_time_ns();
	if (number <= v->number)
		return;
	free(v->error);
	v->error = take_ptr(text);
	v->number = number;
	v->error_time = all->changed;
	v->owner = owner;
}

void verdict_move(struct verdicts *all, const char *from, const char *to)
{
	struct verdict *v, *target;

	lock_scope(&all->lock);
	v = verdict_find(all, from);
	if (!v || streq(from, to))
		return;
	target = verdict_make(all, to);
	free(target->job);
	free(target->error);
	target->job = take_ptr(v->job);
	target->job_time = v->job_time;
	target->job_number = v->job_number;
	target->error = take_ptr(v->error);
	target->error_time = v->error_time;
	target->number = v->number;
	target->owner = v->owner;
	verdict_free_empty(all, target);
	verdict_free_empty(all, v);
}

int verdict_remove(struct verdicts *all, const char *name, enum submit_name kind)
{
	struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_find(all, name);
	if (!v || !*verdict_text(v, kind))
		return -ENOENT;
	free(take_ptr(*verdict_text(v, kind)));
	verdict_free_empty(all, v);
	return 0;
}

/* --- what is shown --- */

int verdict_get(struct verdicts *all, const char *name, enum submit_name kind,
		struct verdict_view *ret)
{
	struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_find(all, name);
	if (!v || !*verdict_text(v, kind))
		return -ENOENT;
	ret->text = text_copy(*verdict_text(v, kind));
	ret->time = kind == SUBMIT_NAME_JOB ? v->job_time : v->error_time;
	ret->owner = v->owner;
	return 0;
}

void verdicts_visit(struct verdicts *all, enum submit_name kind,
		    void (*fn)(void *data, const char *name), void *data)
{
	struct verdict *v, *next;

	lock_scope(&all->lock);
	HASH_ITER(hh, all->table, v, next)
		if (*verdict_text(v, kind))
			fn(data, v->name);
}

/* --- over the end of a mount --- */

void verdict_fill_record(struct verdicts *all, const char *name, struct record *r)
{
	const struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_find(all, name);
	if (!v)
		return;
	r->job = v->job ? text_copy(v->job) : NULL;
	r->job_time = v->job_time;
	r->error = v->error ? text_copy(v->error) : NULL;
	r->error_time = v->error_time;
	r->pending = v->under_way;
	r->since = v->since;
	r->owned = v->owner.uid != all->us.uid || v->owner.gid != all->us.gid;
	r->owner = v->owner;
}

void verdict_recorded(struct verdicts *all, const char *name, int64_t time)
{
	struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_find(all, name);
	if (v && v->under_way && !v->since)
		v->since = time;
}

void verdict_take_record(struct verdicts *all, const char *name, const struct record *r)
{
	struct verdict *v;

	if (!r->job && !r->error && !r->pending)
		return;
	lock_scope(&all->lock);
	v = verdict_make(all, name);
	if (r->job)
		verdict_set_job(v, r->job, r->job_time);
	if (r->error)
		text_set(&v->error, "%s", r->error);
	v->error_time = r->error_time;
	v->under_way = r->pending;
	v->since = r->since;
	if (r->owned)
		v->owner = r->owner;
}

int64_t verdicts_reported_until(struct verdicts *all, int64_t by)
{
	const struct verdict *v;

	lock_scope(&all->lock);
	for (v = all->table; v; v = v->hh.next)
		if (v->under_way && v->since && v->since <= by)
			by = v->since - 1;
	return by;
}

void verdict_was_launched(struct verdicts *all, const char *name, const char *id, int64_t time,
			  int64_t reported)
{
	struct verdict *v;

	lock_scope(&all->lock);
	v = verdict_find(all, name);
	if (v && streq(v->job, id))
		return;
	/* A launch is recorded as under way before it begins, so an older job is of an earlier write. */
	if (time < (v && v->under_way ? v->since : reported + 1) || (v && time < v->launched_time))
		return;
	v = verdict_make(all, name);
	text_set(&v->launched, "%s", id);
	v->launched_time = time;
}

bool verdicts_take_open(struct verdicts *all, char **name, char **id, struct record_owner *owner)
{
	struct verdict *v;

	lock_scope(&all->lock);
	for (v = all->table; v && !v->under_way && !v->launched; v = v->hh.next)
		;
	if (!v)
		return false;
	v->under_way = 0;
	v->since = 0;
	*name = text_copy(v->name);
	*id = take_ptr(v->launched);
	*owner = v->owner;
	return true;
}
