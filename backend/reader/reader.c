/* SPDX-License-Identifier: MIT */
/*
 * Days and jobs are tables under a lock; handlers and the pool fill them, and any thread reads them. Only the I/O
 * thread puts jobs of recent days into the store, after each reading, and takes them out again.
 *
 *	the archive is | what is shown of it	   | what ends it
 *	UNKNOWN	       | nothing		   | source.json was read: OURS or REFUSED
 *	OURS	       | the days			   |
 *	REFUSED	       | nothing, for a reason	   |
 */
#include "backend/reader/reader.h"

#include <errno.h>
#include <stdatomic.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/print.h"
#include "backend/base/wait.h"
#include "backend/base/work.h"
#include "backend/reader/day.h"
#include "backend/reader/remote.h"
#include "backend/reader/spool.h"
#include "spec/base/name.h"
#include "spec/base/sha256.h"
#include "spec/base/time.h"
#include "spec/job/snapshot.h"

/* After a reading this young a look at the history does not lead to another. */
#define FRESH_MS    5000
#define OFTEN_MS    30000  /* how often the archive is read while somebody looks */
#define LOOKED_MS   600000 /* how long somebody who has looked counts as looking */
#define OLD_MS	    300000 /* how often days that began long ago are read */
#define LEFT_MS	    3000   /* when a job that has left jobs/ may be in the archive */
#define FIRST_S	    3	   /* how long the first who looks waits */
#define FIND_MS	    8000   /* and how long somebody who looks for a name in all days */
#define LISTS_MAX   16	   /* the most lists (list.jsonl and its like) of a day */
#define DAYS_MAX    4000   /* the most days of an archive that are seen */
#define OTHERS_MAX  16	   /* days that are kept in memory beside the recent ones */
#define JOBS_MAX    200000 /* the most jobs of recent days */
#define SOURCE_MAX  4096
#define UID_MAX	    4096 /* the largest file uid */
#define MISSING_MAX 64	 /* names of which it is known that no day has them */

enum whose { UNKNOWN, OURS, REFUSED };

struct day;

struct entry {
	const char *uid; /* uid of JOB's first snapshot, which FIRST keeps */
	const struct spec_job *first, *job;
	const struct spec_job *put; /* the snapshot that the store was given; NULL: none */
	char *folder;		    /* its folder in the archive, "DAY/ID"; NULL: not known */
	struct day *day;
	uint64_t completed; /* when all of it was read, by loop_now_ms */
	bool found;	    /* it is in the table */
	UT_hash_handle hh;
};

struct day {
	char name[11];
	char digest[65];
	struct entry *entries; /* in the order of creation */
	size_t n, passed_over;
	uint64_t read, used; /* when it was read and when it was used, by loop_now_ms */
	bool recent;
	struct day *prev, *next;
};

struct missing {
	char *name;
	uint64_t until;
};

struct names {
	char **v;
	size_t n;
};

static void names_clear(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->v[i]);
	free(names->v);
}

struct reader {
	struct loop *loop;
	struct store *store;
	struct remote *remote;
	struct spool *spool;
	char *dir, *namespace, *source;
	int64_t history_keep;
	atomic_int whose; /* an enum whose */
	atomic_ullong looked, refreshed;
	sem_t first; /* posted when the first reading is over */
	atomic_bool read;

	/* I/O thread: */
	bool begun, refreshing, stopping, loaded;
	struct work work;
	struct group group;
	struct loop_timer timer;
	loop_fn stopped;
	void *stopped_data;

	struct lock lock; /* protects all members below */
	struct day *days;
	struct entry *all;  /* by uid */
	char *why;	    /* if REFUSED: the reason */
	struct names names; /* names of the days, as they were last listed */
	uint64_t listed;    /* when they were listed, by loop_now_ms */
	struct missing missing[MISSING_MAX];
	size_t n_missing;
};

/* --- the tables; under the lock --- */

static struct day *find_day(struct reader *r, const char *name)
{
	struct day *d;

	DL_FOREACH(r->days, d)
		if (streq(d->name, name))
			return d;
	return NULL;
}

static struct entry *find_entry(struct reader *r, const char *uid)
{
	struct entry *e;

	HASH_FIND_STR(r->all, uid, e);
	return e;
}

/* Take D out of all tables. */
static void remove_day(struct reader *r, struct day *d)
{
	for (size_t i = 0; i < d->n; i++)
		if (d->entries[i].found)
			HASH_DEL(r->all, &d->entries[i]);
	DL_DELETE(r->days, d);
}

/* E is in the old list of a day, and JOB in the new list: are they the same? */
static bool is_same(const struct entry *e, const struct spec_job *job)
{
	const struct spec_text *a = e->first->line, *b = job->line;

	return a && b && a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static void set_job(const struct spec_job **to, const struct spec_job *job)
{
	if (job)
		spec_job_ref(job);
	spec_job_unref(*to);
	*to = job;
}

/* Keep for D what is known of the jobs of OLD. */
static void take_over(struct reader *r, struct day *d, const struct day *old)
{
	for (size_t i = 0; i < d->n; i++) {
		struct entry *e = &d->entries[i], *was = find_entry(r, e->uid);

		if (!was || was->day != old)
			continue;
		set_job(&e->put, was->put);
		e->folder = take_ptr(was->folder);
		e->completed = was->completed;
		if (is_same(was, e->job))
			set_job(&e->job, was->job);
	}
}

/* The newest day stands first. */
static int compare_days(const struct day *a, const struct day *b)
{
	return strcmp(b->name, a->name);
}

static void add_day(struct reader *r, struct day *d)
{
	DL_INSERT_INORDER(r->days, d, compare_days);
	for (size_t i = 0; i < d->n; i++) {
		struct entry *e = &d->entries[i];

		e->found = !find_entry(r, e->uid);
		if (e->found)
			HASH_ADD_KEYPTR(hh, r->all, e->uid, strlen(e->uid), e);
	}
}

/* --- days --- */

static void day_free(struct day *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->n; i++) {
		spec_job_unref(d->entries[i].first);
		spec_job_unref(d->entries[i].job);
		spec_job_unref(d->entries[i].put);
		free(d->entries[i].folder);
	}
	free(d->entries);
	free(d);
}

/* Make LIST, of which nothing is left then, the day NAME. */
static void install(struct reader *r, const char *name, struct day_list *list, bool recent)
{
	struct day *d = new0(struct day), *old, *other, *oldest = NULL;
	size_t others = 0;

	memcpy(d->name, name, sizeof(d->name));
	memcpy(d->digest, list->digest, sizeof(d->digest));
	d->n = list->n;
	d->passed_over = list->passed_over;
	d->entries = new0_n(struct entry, d->n);
	d->read = d->used = loop_now_ms();
	d->recent = recent;
	for (size_t i = 0; i < d->n; i++) {
		struct entry *e = &d->entries[i];

		e->day = d;
		e->first = spec_job_ref(list->jobs[i]);
		e->job = spec_job_ref(list->jobs[i]);
		e->uid = e->first->uid;
	}
	day_clear(list);
	{
		lock_scope(&r->lock);
		old = find_day(r, name);
		if (old) {
			take_over(r, d, old);
			remove_day(r, old);
		}
		add_day(r, d);
		DL_FOREACH(r->days, other) {
			others += !other->recent;
			if (!other->recent && other != d && (!oldest || other->used < oldest->used))
				oldest = other;
		}
		if (others <= OTHERS_MAX)
			oldest = NULL;
		if (oldest)
			remove_day(r, oldest);
	}
	day_free(old);
	day_free(oldest);
}

/*
 * Read list.jsonl, list-1.jsonl and so on of DAY. -EALREADY: the digest of all of them is KNOWN ("": none), so they
 * were not read again. *RET is empty unless this is 0.
 */
static int read_lists(struct reader *r, const char *day, const char *known, struct day_list *ret)
{
	char *texts[LISTS_MAX] = {0};
	size_t len[LISTS_MAX], n = 0;
	char digests[64 * LISTS_MAX + 1] = "";
	int err = 0;

	*ret = (struct day_list){0};
	for (; n < LISTS_MAX; n++) {
		cleanup_free char *mark = n ? text_print("-%zu", n) : text_copy("");
		cleanup_free char *name = text_print("%s/%s/list%s.jsonl", r->namespace, day, mark);
		char digest[65];

		err = remote_get(r->remote, name, 0, ARCHIVE_MAX, &texts[n], &len[n]);
		if (err)
			break;
		spec_sha256(texts[n], len[n], digest);
		memcpy(digests + 64 * n, digest, 65);
	}
	if (err == -ENOENT)
		err = 0;
	spec_sha256(digests, strlen(digests), ret->digest);
	if (!err && streq(known, ret->digest))
		err = -EALREADY;
	for (size_t i = 0; i < n && !err; i++)
		day_add(ret, texts[i], len[i]);
	for (size_t i = 0; i < n; i++)
		free(texts[i]);
	if (err)
		*ret = (struct day_list){0};
	else
		day_settle(ret);
	return err;
}

/* Read day NAME, unless what is known of it is no older than MS. */
static int read_day(struct reader *r, const char *name, uint64_t ms, bool recent)
{
	char known[65] = "";
	struct day_list list;
	struct day *d;
	int err;

	{
		lock_scope(&r->lock);
		d = find_day(r, name);
		if (d) {
			d->recent |= recent;
			if (loop_now_ms() < d->read + ms)
				return 0;
			memcpy(known, d->digest, sizeof(known));
		}
	}
	err = read_lists(r, name, known, &list);
	if (!err)
		install(r, name, &list, recent);
	lock_scope(&r->lock);
	d = err == -EALREADY ? find_day(r, name) : NULL;
	if (d)
		d->read = loop_now_ms();
	return err == -EALREADY ? 0 : err;
}

static void on_day(void *data, const struct archive_object *object)
{
	struct names *names = data;
	size_t len = strlen(object->name);
	cleanup_free char *name = mem_copy(object->name, len ? len - 1 : 0);

	if (!len || object->name[len - 1] != '/' || !day_is(name))
		return;
	names->v = mem_grow(names->v, names->n + 1, sizeof(char *));
	names->v[names->n++] = take_ptr(name);
}

static void copy_names(struct names *to, const struct names *from)
{
	to->v = new0_n(char *, from->n);
	to->n = from->n;
	for (size_t i = 0; i < from->n; i++)
		to->v[i] = text_copy(from->v[i]);
}

/* The names of the archive's days, which are listed no more often than each FRESH_MS. */
static int list_days(struct reader *r, struct names *ret)
{
	cleanup(names_clear) struct names fresh = {0};
	cleanup_free char *prefix = NULL;
	int err;

	if (atomic_load(&r->whose) != OURS) {
		cleanup_free char *why = NULL;

		/* An archive that could not be asked yet whose jobs it has. */
		return atomic_load(&r->whose) == UNKNOWN && remote_away(r->remote, &why)
			       ? -EHOSTUNREACH
			       : 0;
	}
	{
		lock_scope(&r->lock);
		if (loop_now_ms() < r->listed + FRESH_MS) {
			copy_names(ret, &r->names);
			return 0;
		}
	}
	prefix = text_print("%s/", r->namespace);
	err = remote_list(r->remote, prefix, DAYS_MAX, on_day, &fresh);
	if (err)
		return err;
	copy_names(ret, &fresh);
	lock_scope(&r->lock);
	struct names old = r->names;

	r->names = fresh;
	r->listed = loop_now_ms();
	fresh = old;
	return 0;
}

/* --- reading all that is recent; on the pool --- */

static void refuse(struct reader *r, const char *why)
{
	diag(DIAG_WARNING, "archive: %s: no job of it is shown", why);
	{
		lock_scope(&r->lock);
		text_set(&r->why, "%s", why);
	}
	atomic_store(&r->whose, REFUSED);
}

static void check_source(struct reader *r)
{
	cleanup_free char *name = keep_source_name(r->namespace), *text = NULL;
	cleanup_free char *why = NULL;
	size_t len;
	int err = remote_get(r->remote, name, 0, SOURCE_MAX, &text, &len);

	if (err == -EACCES) {
		why = text_print("%s/%s can't be read", r->dir, name);
		return refuse(r, why);
	}
	if (err)
		return;
	if (len == strlen(r->source) && memcmp(text, r->source, len) == 0) {
		atomic_store(&r->whose, OURS);
		return;
	}
	why = text_print(
		"%s/%s has the jobs of another cluster, or of an earlier namespace of that "
		"name",
		r->dir, r->namespace);
	refuse(r, why);
}

static void refresh(void *data)
{
	struct reader *r = data;
	cleanup(names_clear) struct names names = {0};
	int64_t now = loop_time_ns();
	char cutoff[11], yesterday[11];
	size_t jobs = 0;
	struct day *d;
	int err = 0;

	remote_try(r->remote);
	if (!r->loaded)
		spool_load(r->spool);
	if (atomic_load(&r->whose) == UNKNOWN)
		check_source(r);
	if (list_days(r, &names) < 0)
		return;
	keep_day(now - r->history_keep * NS_PER_S, cutoff);
	keep_day(now - 86400 * NS_PER_S, yesterday);
	for (size_t i = names.n; i-- > 0 && !err && jobs < JOBS_MAX;) {
		const char *name = names.v[i];

		if (strcmp(name, cutoff) < 0)
			break;
		err = read_day(r, name, strcmp(name, yesterday) >= 0 ? FRESH_MS / 2 : OLD_MS, true);
		lock_scope(&r->lock);
		d = find_day(r, name);
		jobs += d ? d->n : 0;
	}
	lock_scope(&r->lock);
	DL_FOREACH(r->days, d)
		d->recent &= strcmp(d->name, cutoff) >= 0;
}

/* --- the store; I/O thread --- */

/* JOB as the store is to have it, beside the jobs that it has; NULL: it can't have it. */
static struct spec_job *make_shown(struct reader *r, const struct spec_job *job,
				   const struct spec_job *there)
{
	const struct spec_job *holder cleanup_job = store_get(r->store, BACKEND_HISTORY, job->id);
	struct spec_job *copy = spec_job_copy(job);
	cleanup_free char *name = NULL;

	if (there) {
		name = text_copy(there->id);
	} else if (holder && !streq(holder->uid, job->uid) &&
		   (!holder->archived || holder->created > job->created)) {
		/* A newer job has the name, or a folder has it. */
		name = text_print("%s~%.8s", job->id, job->uid);
	}
	if (name && !streq(name, job->id)) {
		spec_set(&copy->id, name);
		spec_text_unref(take_ptr(copy->line));
		spec_job_unref(take_ptr(holder));
		holder = store_get(r->store, BACKEND_HISTORY, name);
		if (!spec_name_is_file(name) || (holder && !streq(holder->uid, job->uid))) {
			spec_job_unref(copy);
			return NULL;
		}
	}
	return spec_job_pack(copy);
}

/* Put the job UID of the archive into the store, unless it is there or another part of kxfs knows it. */
static void show_job(struct reader *r, const char *uid)
{
	const struct spec_job *there cleanup_job = store_get_uid(r->store, uid);
	const struct spec_job *job cleanup_job = NULL;
	struct spec_job *shown;
	struct entry *e;

	if (there && !there->archived)
		return;
	{
		lock_scope(&r->lock);
		e = find_entry(r, uid);
		if (!e || (there && e->put == e->job))
			return;
		job = spec_job_ref(e->job);
	}
	shown = make_shown(r, job, there);
	if (!shown)
		return;
	spec_job_ref(shown);
	store_put(r->store, shown);
	{
		lock_scope(&r->lock);
		e = find_entry(r, uid);
		if (e && e->job == job) {
			set_job(&e->job, shown);
			set_job(&e->put, shown);
		}
	}
	spec_job_unref(shown);
}

/* Let the store have all jobs of recent days that no other part knows, and nothing else of the archive. */
static void show(struct reader *r)
{
	cleanup(names_clear) struct names uids = {0};
	const struct spec_job **jobs cleanup_free = NULL;
	size_t n_jobs;

	{
		const struct day *d;
		size_t n = 0;

		lock_scope(&r->lock);
		DL_FOREACH(r->days, d)
			n += d->recent ? d->n : 0;
		uids.v = new0_n(char *, n);
		DL_FOREACH(r->days, d) {
			/* The newest come first, so that the older ones get other names. */
			for (size_t i = d->n; d->recent && i-- > 0;)
				uids.v[uids.n++] = text_copy(d->entries[i].uid);
		}
	}
	for (size_t i = 0; i < uids.n; i++)
		show_job(r, uids.v[i]);
	store_list(r->store, BACKEND_HISTORY, &jobs, &n_jobs);
	for (size_t i = 0; i < n_jobs; i++) {
		bool recent = true;

		if (jobs[i]->archived) {
			lock_scope(&r->lock);
			const struct entry *e = find_entry(r, jobs[i]->uid);

			recent = e && e->day->recent;
		}
		if (!recent)
			store_remove(r->store, jobs[i]->uid);
		spec_job_unref(jobs[i]);
	}
}

static void on_refreshed(void *data)
{
	struct reader *r = data;
	uint64_t now = loop_now_ms();

	r->refreshing = false;
	r->loaded = true;
	atomic_store(&r->refreshed, now);
	if (r->stopping)
		return;
	show(r);
	if (!atomic_exchange(&r->read, true))
		sem_post(&r->first);
	if (now < atomic_load(&r->looked) + LOOKED_MS)
		loop_timer_set(&r->timer, OFTEN_MS);
}

static void kick(void *data)
{
	struct reader *r = data;

	if (!r->begun || r->refreshing || r->stopping || atomic_load(&r->whose) == REFUSED)
		return;
	loop_timer_stop(&r->timer);
	r->refreshing = true;
	r->work =
		(struct work){.run = refresh, .done = on_refreshed, .data = r, .group = &r->group};
	work_start(&r->work, r->loop);
}

void reader_begin(struct reader *r, const char *namespace, const char *uid)
{
	r->namespace = text_copy(namespace);
	r->source = keep_source_text(namespace, uid);
	r->begun = true;
	spool_start(r->spool);
	atomic_store(&r->looked, loop_now_ms());
	kick(r);
}

void reader_refuse(struct reader *r, const char *why)
{
	refuse(r, why);
	atomic_store(&r->read, true);
	sem_post(&r->first);
}

void reader_job(struct reader *r, const struct spec_job *old, const struct spec_job *new_job)
{
	if (!old || new_job || old->archived || r->stopping || !r->begun)
		return;
	if (!loop_timer_is_set(&r->timer) || atomic_load(&r->looked) + LOOKED_MS > loop_now_ms())
		loop_timer_set(&r->timer, LEFT_MS);
}

/* --- who wants to know; any thread --- */

void reader_look(struct reader *r)
{
	uint64_t now = loop_now_ms();

	atomic_store(&r->looked, now);
	if (now >= atomic_load(&r->refreshed) + FRESH_MS)
		loop_post(r->loop, kick, r);
	if (atomic_load(&r->read))
		return;
	/* Each one that is woken wakes the next. */
	if (wait_for(&r->first, FIRST_S))
		sem_post(&r->first);
}

int reader_days(struct reader *r, char ***ret, size_t *ret_n)
{
	struct names names = {0};
	int err = list_days(r, &names);
	const struct day *d;

	*ret = names.v;
	*ret_n = names.n;
	if (!err)
		return 0;
	/* What is known already is shown. */
	names_clear(&names);
	names = (struct names){0};
	{
		lock_scope(&r->lock);
		DL_FOREACH(r->days, d) {
			names.v = mem_grow(names.v, names.n + 1, sizeof(char *));
			names.v[names.n++] = text_copy(d->name);
		}
	}
	*ret = names.v;
	*ret_n = names.n;
	return names.n ? 0 : err;
}

/* Read DAY unless what is known of it is fresh. 0, or a negative errno if it can't be read. */
static int need_day(struct reader *r, const char *day)
{
	return day_is(day) && atomic_load(&r->whose) == OURS ? read_day(r, day, FRESH_MS, false)
							     : -ENOENT;
}

/* The day DAY, if it has any job; else NULL. Under the lock. */
static struct day *use_day(struct reader *r, const char *name)
{
	struct day *d = find_day(r, name);

	if (!d || d->n == 0)
		return NULL;
	d->used = loop_now_ms();
	return d;
}

int reader_jobs(struct reader *r, const char *day, const struct spec_job ***ret, size_t *ret_n)
{
	int err = need_day(r, day);
	struct day *d;

	lock_scope(&r->lock);
	d = use_day(r, day);
	if (!d)
		return err ? err : -ENOENT;
	*ret = new0_n(const struct spec_job *, d->n);
	*ret_n = d->n;
	for (size_t i = 0; i < d->n; i++)
		(*ret)[i] = spec_job_ref(d->entries[i].first);
	return 0;
}

int reader_job_of(struct reader *r, const char *day, const char *id, const struct spec_job **ret)
{
	int err = need_day(r, day);
	struct day *d;

	lock_scope(&r->lock);
	d = use_day(r, day);
	for (size_t i = 0; d && i < d->n; i++) {
		if (!streq(d->entries[i].first->id, id))
			continue;
		*ret = spec_job_ref(d->entries[i].first);
		return 0;
	}
	return err ? err : -ENOENT;
}

const struct spec_job *reader_by_uid(struct reader *r, const char *uid)
{
	struct entry *e;

	lock_scope(&r->lock);
	e = find_entry(r, uid);
	if (!e)
		return NULL;
	e->day->used = loop_now_ms();
	return spec_job_ref(e->job);
}

static bool is_missing(struct reader *r, const char *id)
{
	lock_scope(&r->lock);

	for (size_t i = 0; i < MISSING_MAX; i++)
		if (r->missing[i].name && streq(r->missing[i].name, id) &&
		    loop_now_ms() < r->missing[i].until)
			return true;
	return false;
}

/* Find the job of DAY that the archive calls ID; -ENOENT: there is none. */
static int find_in(struct reader *r, const char *day, const char *id, const struct spec_job **ret)
{
	cleanup_free char *name = text_print("%s/%s/%s/uid", r->namespace, day, id), *uid = NULL;
	const struct spec_job **jobs cleanup_free = NULL;
	size_t len = 0, n = 0;
	int err = remote_get(r->remote, name, 0, UID_MAX, &uid, &len);

	if (!err)
		err = reader_jobs(r, day, &jobs, &n);
	if (err)
		return err;
	uid[strcspn(uid, "\n")] = '\0';
	*ret = NULL;
	for (size_t i = 0; i < n; i++) {
		if (!*ret && streq(jobs[i]->uid, uid))
			*ret = spec_job_ref(jobs[i]);
		spec_job_unref(jobs[i]);
	}
	return *ret ? 0 : -ENOENT;
}

int reader_find(struct reader *r, const char *id, const struct spec_job **ret)
{
	cleanup(names_clear) struct names names = {0};
	uint64_t until = loop_now_ms() + FIND_MS;
	int err;

	if (!spec_name_is_file(id) || is_missing(r, id))
		return -ENOENT;
	err = list_days(r, &names);
	for (size_t i = names.n; i-- > 0 && !err;) {
		const struct day *d;
		bool recent;

		{
			lock_scope(&r->lock);
			d = find_day(r, names.v[i]);
			recent = d && d->recent;
		}
		if (recent) /* the store has the jobs of a recent day */
			continue;
		err = find_in(r, names.v[i], id, ret);
		if (!err)
			return 0;
		if (err == -ENOENT)
			err = loop_now_ms() < until ? 0 : -ETIMEDOUT;
	}
	if (!err && atomic_load(&r->whose) == OURS) {
		lock_scope(&r->lock);
		struct missing *m = &r->missing[r->n_missing++ % MISSING_MAX];

		text_set(&m->name, "%s", id);
		m->until = loop_now_ms() + OFTEN_MS;
	}
	return err ? err : -ENOENT;
}

/* --- one job --- */

/* Read what the archive has of JOB in its directory. *RET_FOLDER (malloc'ed) stays NULL if there is none. */
static int read_whole(struct reader *r, const struct spec_job *job, struct spec_job **ret,
		      char **ret_folder)
{
	struct spec_job *made;

	for (int second = 0; second < 2; second++) {
		cleanup_free char *folder = keep_folder(job, second), *text = NULL;
		cleanup_free char *name =
			text_print("%s/%s/%s", r->namespace, folder, keep_text_name(KEEP_SNAPSHOT));
		struct spec_job *found cleanup_job = NULL;
		size_t len;
		int err = remote_get(r->remote, name, 0, ARCHIVE_MAX, &text, &len);

		if (err && err != -ENOENT)
			return err;
		/* The text may be anything, or another job's. */
		if (err || spec_snapshot_parse(text, len, &found) < 0 ||
		    !streq(found->uid, job->uid))
			continue;
		made = spec_job_copy(found);
		spec_set(&made->id, job->id);
		made->created = job->created;
		made->history = made->archived = true;
		made->own = made->dropped = false;
		made->line = job->line ? spec_text_ref(job->line) : NULL;
		*ret = spec_job_pack(made);
		*ret_folder = take_ptr(folder);
		return 0;
	}
	made = spec_job_copy(job);
	made->brief = false;
	*ret = spec_job_pack(made);
	return 0;
}

/*
 * Set *RET (a new reference) to what the archive has of JOB, which another part of kxfs may know too, and *RET_FOLDER
 * (malloc'ed; may be NULL) to NAMESPACE/DAY/ID. -ENOENT: the archive does not have the job.
 */
static int read_job(struct reader *r, const struct spec_job *job, const struct spec_job **ret,
		    char **ret_folder)
{
	const struct spec_job *known cleanup_job = NULL;
	struct spec_job *whole = NULL;
	cleanup_free char *folder = NULL;
	struct entry *e;
	int err = 0;

	{
		lock_scope(&r->lock);
		e = find_entry(r, job->uid);
		if (!e && !job->archived)
			return -ENOENT;
		known = spec_job_ref(e ? e->job : job);
		folder = e && e->folder ? text_copy(e->folder) : NULL;
		/* There may be more by now of a job that goes on. */
		if (e && !known->brief && !spec_job_has_ended(known) &&
		    loop_now_ms() >= e->completed + OFTEN_MS)
			e = NULL;
	}
	if (!e || known->brief) {
		free(take_ptr(folder));
		err = read_whole(r, known, &whole, &folder);
	}
	if (err && known->brief)
		return err;
	*ret = whole ? whole : spec_job_ref(known);
	lock_scope(&r->lock);
	e = whole ? find_entry(r, whole->uid) : NULL;
	if (e) {
		set_job(&e->job, whole);
		free(e->folder);
		e->folder = folder ? text_copy(folder) : NULL;
		e->completed = loop_now_ms();
	}
	if (!ret_folder)
		return 0;
	if (!folder)
		return -ENOENT;
	*ret_folder = text_print("%s/%s", r->namespace, folder);
	return 0;
}

int reader_complete(struct reader *r, const struct spec_job **job)
{
	const struct spec_job *whole = NULL;
	struct spec_job *more;
	int err = (*job)->archived && !(*job)->brief ? 0 : read_job(r, *job, &whole, NULL);

	if (err || !whole)
		return err == -ENOENT ? 0 : err;
	if (!(*job)->archived) {
		more = spec_job_copy(*job);
		for (size_t i = 0; i < more->n_replicas; i++) {
			const struct spec_replica *old =
				spec_job_replica(whole, more->replicas[i].name);

			if (old)
				spec_replica_add_older(&more->replicas[i], old);
		}
		spec_job_unref(whole);
		whole = spec_job_pack(more);
	}
	spec_job_unref(*job);
	*job = whole;
	return 0;
}

int reader_text(struct reader *r, const struct spec_job *job, enum keep_text which, char **ret,
		size_t *ret_len)
{
	const struct spec_job *whole cleanup_job = NULL;
	cleanup_free char *folder = NULL, *name = NULL;
	int err = read_job(r, job, &whole, &folder);

	if (err)
		return err;
	name = text_print("%s/%s", folder, keep_text_name(which));
	return remote_get(r->remote, name, 0, ARCHIVE_MAX, ret, ret_len);
}

int reader_log(struct reader *r, const struct spec_job *job, const char *key, enum log_form form,
	       struct log **ret)
{
	const struct spec_job *whole cleanup_job = NULL;
	cleanup_free char *folder = NULL;
	int err = read_job(r, job, &whole, &folder);

	return err ? err : spool_log(r->spool, whole, folder, key, form, ret);
}

int reader_log_stat(struct reader *r, const struct spec_job *job, const char *key,
		    enum log_form form, struct log_stat *ret)
{
	const struct spec_job *whole cleanup_job = NULL;
	cleanup_free char *folder = NULL;
	int err = read_job(r, job, &whole, &folder);

	return err ? err : spool_stat(r->spool, whole, folder, key, form, ret);
}

/* --- what is told of it --- */

uint64_t reader_bytes(struct reader *r)
{
	return spool_bytes(r->spool);
}

void reader_info(struct reader *r, FILE *out)
{
	cleanup_free char *away = NULL, *refused = NULL;
	int64_t since = remote_away(r->remote, &away);
	size_t jobs = 0, passed_over = 0;
	const struct day *d;
	char time[32];

	{
		lock_scope(&r->lock);
		DL_FOREACH(r->days, d) {
			jobs += d->recent ? d->n : 0;
			passed_over += d->passed_over;
		}
		refused = text_copy(r->why ? r->why : "");
	}
	spec_time_text(since, time);
	print_text(out, "archive", r->dir);
	if (*refused)
		print_text(out, "archive_refused", refused);
	else
		fprintf(out, "archive_reachable: %s\n",
			since			? "false"
			: atomic_load(&r->read) ? "true"
						: "null");
	if (since && !*refused) {
		fprintf(out, "archive_away_since: %s\n", time);
		print_text(out, "archive_error", away);
	}
	fprintf(out, "archive_jobs: %zu\n", jobs);
	fprintf(out, "archive_passed_over: %zu\n", passed_over);
	fprintf(out, "archive_fetched_bytes: %llu\n", (unsigned long long)reader_bytes(r));
}

/* --- life --- */

static void on_spool_stopped(void *data)
{
	struct reader *r = data;

	group_when_empty(&r->group, r->stopped, r->stopped_data);
}

static void on_remote_stopped(void *data)
{
	struct reader *r = data;

	spool_stop(r->spool, on_spool_stopped, r);
}

void reader_stop(struct reader *r, loop_fn fn, void *data)
{
	r->stopping = true;
	r->stopped = fn;
	r->stopped_data = data;
	loop_timer_stop(&r->timer);
	remote_stop(r->remote, on_remote_stopped, r);
}

int reader_new(const struct reader_config *config, struct reader **ret, char **ret_text)
{
	struct reader *r = new0(struct reader);
	int err;

	*r = (struct reader){
		.loop = config->loop,
		.store = config->store,
		.dir = text_copy(config->place.where),
		.history_keep = config->history_keep,
		.lock = LOCK_INIT,
	};
	sem_init(&r->first, 0, 0);
	group_init(&r->group, config->loop);
	loop_timer_init(&r->timer, config->loop, kick, r);
	err = remote_new(config->loop, &config->place, &r->remote, ret_text);
	if (err) {
		reader_free(r);
		return err;
	}
	err = spool_new(config->loop, r->remote, config->output, config->state_dir,
			config->spool_limit, &r->spool, ret_text);
	if (err)
		reader_free(r);
	else
		*ret = r;
	return err;
}

void reader_free(struct reader *r)
{
	struct day *d;

	if (!r)
		return;
	while ((d = r->days)) {
		remove_day(r, d);
		day_free(d);
	}
	for (size_t i = 0; i < MISSING_MAX; i++)
		free(r->missing[i].name);
	names_clear(&r->names);
	spool_free(r->spool);
	remote_free(r->remote);
	sem_destroy(&r->first);
	free(r->dir);
	free(r->namespace);
	free(r->source);
	free(r->why);
	free(r);
}
