/* SPDX-License-Identifier: MIT */
/*
 * A table of the output that is on disk, by key; what else is known of a job is in its record.
 *
 * What is done to the output of a job, one thing at a time:
 *
 *	state	  what is under way			what ends it		next
 *	READY	  nothing				folders_remove		REMOVING
 *						folders_drop_output		DROPPING
 *	DROPPING  the output is being removed		that is done		READY
 *						folders_remove			DROPPING, then REMOVING
 *	REMOVING  the record and the output are		that is done		(freed)
 *		  being removed
 */
#include "backend/kube/folders.h"

#include <errno.h>
#include <fcntl.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/work.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/job/snapshot.h"

#define SOON_MS 1000
/* How long a record may say that its job is being launched although the job was seen. */
#define SEEN_MS 500

enum state { FOLDER_READY, FOLDER_DROPPING, FOLDER_REMOVING };

/* Output on disk. */
struct entry {
	struct folders *f;
	char *key, *uid;
	enum state state;
	bool full;		/* there is output now */
	bool unmerged;		/* see struct folder */
	bool removal;		/* it is to be REMOVING as soon as it is READY */
	bool refused;		/* its record can't be made, and a message has said so */
	struct waiter *waiters; /* those who wait for its removal */
	UT_hash_handle hh;	/* by key */
};

struct waiter {
	folders_fn fn;
	void *data;
	struct waiter *next;
};

struct folders {
	struct folders_config config;
	struct folders_events events;
	loop_fn saved;
	void *saved_data;
	struct entry *all;
	struct loop_timer retry; /* for records that could not be made */
	bool stopping;
};

static struct entry *find(const struct folders *f, const char *key)
{
	struct entry *e;

	HASH_FIND_STR(f->all, key, e);
	return e;
}

static struct entry *add(struct folders *f, const char *key, const char *uid)
{
	struct entry *e = new0(struct entry);

	e->f = f;
	e->key = text_copy(key);
	e->uid = text_copy(uid);
	HASH_ADD_KEYPTR(hh, f->all, e->key, strlen(e->key), e);
	return e;
}

static void entry_free(struct entry *e)
{
	HASH_DEL(e->f->all, e);
	free(e->key);
	free(e->uid);
	free(e);
}

static bool is_going(const struct entry *e)
{
	return e->removal || e->state == FOLDER_REMOVING;
}

/* --- whose a record is --- */

/* Without annotations (no_annotations) only the object's name can tell, if nobody else would choose that. */
static bool is_submission(const struct record *r, const struct spec_job_view *view)
{
	const struct spec_head *head = record_head(r);
	const char *dash = strrchr(head->id, '-');

	if (!head->own || *head->uid || record_is_going(r) || !streq(head->id, view->meta.name))
		return false;
	if (*view->submission)
		return streq(head->key, view->submission);
	return dash && spec_name_is_suffix(dash + 1);
}

/* The record of the very job of VIEW; NULL: it has none. */
static struct record *record_of(const struct folders *f, const struct spec_job_view *view)
{
	struct record *r = records_by_uid(f->config.records, view->meta.uid);

	if (r)
		return record_is_going(r) ? NULL : r;
	if (*view->submission) {
		r = records_by_key(f->config.records, view->submission);
		return r && is_submission(r, view) ? r : NULL;
	}
	while ((r = records_next_unseen(f->config.records, r)))
		if (is_submission(r, view))
			return r;
	return NULL;
}

static struct folder describe(const struct record *r, const struct entry *e)
{
	const struct spec_head *head = r ? record_head(r) : NULL;
	struct folder ret = {0};

	if (head)
		ret = (struct folder){
			.key = head->key,
			.uid = head->uid,
			.id = head->id,
			.file = head->file,
			.own = head->own,
			.dropped = head->dropped,
		};
	else if (e)
		ret = (struct folder){.key = e->key, .uid = e->uid, .id = e->key, .file = ""};
	ret.output = e;
	ret.unmerged = e && e->unmerged;
	return ret;
}

struct folder folders_of(const struct folders *f, const struct spec_job_view *view)
{
	const struct record *r = record_of(f, view);
	const struct entry *e = find(f, r ? record_head(r)->key : view->meta.uid);

	if (e && (is_going(e) || (!r && !streq(e->uid, view->meta.uid))))
		e = NULL;
	return describe(r, e);
}

struct folder folders_find(const struct folders *f, const char *key)
{
	return describe(records_by_key(f->config.records, key), find(f, key));
}

bool folders_awaits(const struct folders *f, const char *id, const char *key)
{
	const struct record *r = NULL;

	while ((r = records_next_unseen(f->config.records, r))) {
		const struct spec_head *head = record_head(r);

		if ((head->state == RECORD_HELD || head->state == RECORD_SUBMITTING) &&
		    !record_is_going(r) && streq(head->id, id) && !streq(head->key, key))
			return true;
	}
	return false;
}

struct each {
	struct folders *f;
	void (*fn)(void *data, const struct folder *folder);
	void *data;
};

static void on_record(void *data, struct record *r)
{
	const struct each *each = data;
	const struct spec_head *head = record_head(r);
	const struct folder folder = describe(r, find(each->f, head->key));

	if ((head->state == RECORD_LIVE || head->state == RECORD_HISTORY) && !record_is_going(r))
		each->fn(each->data, &folder);
}

void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data)
{
	records_each(f->config.records, on_record, &(struct each){f, fn, data});
}

bool folders_holds(const struct folders *f, const struct spec_job *job)
{
	const struct entry *e = find(f, spec_job_key(job));

	return e && !is_going(e) && streq(e->uid, job->uid);
}

bool folders_has_output(const struct folders *f, const struct spec_job *job)
{
	const struct entry *e = find(f, spec_job_key(job));

	return e && e->full;
}

void folders_bind(struct folders *f, const struct spec_job_view *view)
{
	struct record *r = record_of(f, view);
	const struct spec_head *head = r ? record_head(r) : NULL;
	struct entry *e = head ? find(f, head->key) : NULL;

	if (e && !*e->uid)
		text_set(&e->uid, "%s", view->meta.uid);
	/* A held job is launched first: held.c sees it in the store. */
	if (!head || *head->uid || head->state == RECORD_HELD)
		return;
	records_note(r,
		     &(struct record_change){
			     .state = RECORD_LIVE, .uid = view->meta.uid, .reason = "", .why = ""},
		     head->held ? 0 : SEEN_MS);
}

int folders_claim(struct folders *f, const struct spec_job_view *view)
{
	const char *uid = view->meta.uid;
	const struct record *r = records_by_uid(f->config.records, uid);
	struct entry *e;

	if (!r)
		r = record_of(f, view);
	e = find(f, r ? record_head(r)->key : uid);
	if ((r && record_is_going(r)) || (e && (e->state != FOLDER_READY || e->removal)))
		return -EINPROGRESS;
	if (!r && ((e && !streq(e->uid, uid)) || records_by_key(f->config.records, uid)))
		return -EBUSY;
	if (!r && (!spec_name_is_file(uid) || strlen(uid) > SPEC_MAX_KEY))
		return -EINVAL;
	if (!e)
		e = add(f, r ? record_head(r)->key : uid, uid);
	e->full = true;
	return 0;
}

/* --- snapshots --- */

static const struct spec_job *snapshot_of(void *data, const struct record *r)
{
	const struct folders *f = data;
	const struct spec_head *head = record_head(r);
	const struct spec_job *job cleanup_job =
		*head->uid ? store_get_uid(f->config.store, head->uid) : NULL;

	return job && !job->held ? take_ptr(job) : NULL;
}

static void on_retry(void *data)
{
	struct folders *f = data;
	struct entry *e, *next;

	HASH_ITER(hh, f->all, e, next)
		if (e->refused && !is_going(e))
			folders_save(f, e->uid, false);
}

/* The record of a job that was not submitted from here was made. */
struct made {
	struct folders *f;
	char *key;
};

static void on_made(void *data, int err)
{
	struct made *m = data;
	struct folders *f = m->f;
	struct entry *e = find(f, m->key);

	if (e && err && !e->refused)
		diag(DIAG_ERROR, "%s: its record %s/jobs/%s can't be made: %s%s", m->key,
		     f->config.state_dir, m->key, strerror(-err),
		     f->stopping ? "" : "; kxfs retries until it can");
	if (e)
		e->refused = err;
	if (e && err && !f->stopping)
		loop_timer_set(&f->retry, SOON_MS);
	else if (e && !err)
		/* It may have left jobs/ meanwhile. */
		folders_save(f, e->uid, false);
	free(m->key);
	free(m);
}

/* JOB, which was not submitted from here, has output: make a record of it. */
static void make_record(struct folders *f, const struct spec_job *job)
{
	struct spec_head *head = spec_head_new();
	struct made *m = new0(struct made);

	spec_set(&head->key, job->uid);
	spec_set(&head->uid, job->uid);
	spec_set(&head->id, job->id);
	spec_set(&head->backend, job->backend);
	spec_set(&head->namespace, job->namespace);
	head->created = job->created;
	head->state = RECORD_LIVE;
	m->f = f;
	m->key = text_copy(job->uid);
	records_make(f->config.records, head, &(struct record_rest){.document = ""}, NULL, on_made,
		     m);
}

void folders_save(struct folders *f, const char *uid, bool now)
{
	const struct spec_job *job cleanup_job = store_get_uid(f->config.store, uid);
	struct record *r = records_by_uid(f->config.records, uid);
	const enum record_state state = job && job->history ? RECORD_HISTORY : RECORD_LIVE;

	if (!job || job->held || (r && record_is_going(r)))
		return;
	if (r)
		records_note(r, &(struct record_change){.state = state}, now ? 0 : SOON_MS);
	else if (folders_holds(f, job) && streq(spec_job_key(job), uid))
		make_record(f, job);
	f->saved(f->saved_data);
}

/* --- what is removed --- */

/* Output of the job of E may be captured again. */
static void freed(const struct entry *e)
{
	e->f->events.freed(e->f->events.data, e->uid);
}

static void tell(struct waiter *waiters, int err)
{
	struct waiter *w;

	while ((w = waiters)) {
		LL_DELETE(waiters, w);
		w->fn(w->data, err);
		free(w);
	}
}

/* Something that is being done to what there is of a job. */
struct change {
	struct folders *f;
	char *key;
	folders_fn done; /* may be NULL */
	void *data;
	bool recorded; /* that its output is removed */
};

static struct change *change_new(struct folders *f, const char *key, folders_fn done, void *data)
{
	struct change *c = new0(struct change);

	*c = (struct change){.f = f, .key = text_copy(key), .done = done, .data = data};
	group_enter(f->config.group);
	return c;
}

static void change_end(struct change *c, int err)
{
	struct group *group = c->f->config.group;

	if (c->done)
		c->done(c->data, err);
	else if (err)
		diag(DIAG_ERROR, "%s can't be removed: %s", c->key, strerror(-err));
	free(c->key);
	free(c);
	group_leave(group);
}

static void remove_now(struct entry *e);

static void on_removed(void *data, int err)
{
	struct change *c = data;
	struct entry *e = find(c->f, c->key);
	struct waiter *waiters = e ? take_ptr(e->waiters) : NULL;

	if (e && err && waiters) { /* the user may try again */
		e->state = FOLDER_READY;
		e->removal = false;
		freed(e);
	} else if (e) {
		freed(e);
		entry_free(e);
	}
	if (waiters || c->done) {
		tell(waiters, err);
		err = c->done ? err : 0;
	}
	change_end(c, err);
}

/* The record is removed, or there was none. */
static void on_unlinked(void *data, int err)
{
	struct change *c = data;

	if (err || !find(c->f, c->key))
		return on_removed(c, err);
	output_job_remove(c->f->config.output, c->key, on_removed, c);
}

/* Remove the record of C, then its output. */
static void remove_all(struct change *c)
{
	struct record *r = records_by_key(c->f->config.records, c->key);

	if (r && !record_is_going(r) && record_head(r)->state != RECORD_HELD)
		records_remove(r, false, on_unlinked, c);
	else
		on_unlinked(c, 0);
}

static void remove_now(struct entry *e)
{
	e->state = FOLDER_REMOVING;
	remove_all(change_new(e->f, e->key, NULL, NULL));
}

void folders_remove(struct folders *f, const char *key, folders_fn done, void *data)
{
	struct record *r = records_by_key(f->config.records, key);
	struct entry *e = find(f, key);
	struct waiter *w;

	if (!e && !done) {
		if (r && !record_is_going(r))
			records_remove(r, false, NULL, NULL);
		return;
	}
	if (!e)
		return remove_all(change_new(f, key, done, data));
	if (done) {
		w = new0(struct waiter);
		*w = (struct waiter){.fn = done, .data = data};
		LL_APPEND(e->waiters, w);
	}
	if (e->state == FOLDER_READY)
		remove_now(e);
	else
		e->removal = true;
}

static void drop_end(struct change *c, int err)
{
	struct entry *e = find(c->f, c->key);

	if (e) {
		freed(e);
		e->state = FOLDER_READY;
		if (e->removal)
			remove_now(e);
	}
	change_end(c, err);
}

static void drop_record(struct change *c);

static void on_output_dropped(void *data, int err)
{
	struct change *c = data;

	if (err || c->recorded)
		return drop_end(c, err);
	c->recorded = true;
	drop_record(c);
}

/*
 * The record says that the output is removed before it is: else the next mount would fetch all of it again, or not
 * report that it is missing. On a full disk the record can only be written when the removed output has made room.
 */
static void on_drop_recorded(void *data, int err)
{
	struct change *c = data;
	struct record *r = records_by_key(c->f->config.records, c->key);
	struct entry *e = find(c->f, c->key);

	if (err == -ESTALE)
		return drop_record(c);
	if (e && !e->full) {
		/* It is removed all the same. */
		if (err && r && !record_is_going(r))
			records_note(r,
				     &(struct record_change){.state = record_head(r)->state,
							     .dropped = true},
				     SOON_MS);
		return drop_end(c, 0);
	}
	if (err && !file_is_full(err))
		return drop_end(c, err);
	if (e)
		e->full = false;
	c->recorded = !err;
	output_job_remove(c->f->config.output, c->key, on_output_dropped, c);
}

static void drop_record(struct change *c)
{
	struct record *r = records_by_key(c->f->config.records, c->key);
	const struct record_change change = {.state = r ? record_head(r)->state : 0,
					     .dropped = true};

	if (r && !record_is_going(r))
		records_commit(r, &change, on_drop_recorded, c);
	else
		on_drop_recorded(c, 0);
}

static void nothing_dropped(void *data)
{
	change_end(data, 0);
}

void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data)
{
	struct entry *e = find(f, key);
	struct change *c = change_new(f, key, done, data);

	if (!e || e->state != FOLDER_READY)
		return loop_post(f->config.loop, nothing_dropped, c);
	e->state = FOLDER_DROPPING;
	e->full = true;
	drop_record(c);
}

/* --- the start --- */

/* What the start finds of a record. */
struct found {
	struct record *r;
	const char *key;
	char *text; /* its snapshot */
	struct spec_job *job;
	bool output, unmerged;
};

struct load {
	struct work work;
	struct folders *f;
	struct found *v;
	size_t n;
	char **strays; /* output that no record names */
	size_t n_strays;
	void (*fn)(void *data, int err);
	void *data;
};

static void find_record(void *data, struct record *r)
{
	struct load *l = data;
	const struct spec_head *head = record_head(r);
	struct found found = {.r = r, .key = head->key};

	if (head->state == RECORD_LIVE || head->state == RECORD_HISTORY)
		found.text = record_take_part(r, RECORD_SNAPSHOT);
	l->v = mem_more(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = found;
}

static int by_key(const void *a, const void *b)
{
	const struct found *x = a, *y = b;

	return strcmp(x->key, y->key);
}

/* Output that no record names is the rest of a removal that a crash has cut off, unless its record is damaged. */
static void find_stray(struct load *l, const char *key)
{
	const char *state_dir = l->f->config.state_dir;
	cleanup_free char *place = NULL;

	if (l->f->config.passive)
		return;
	if (record_file_output_aside(state_dir, key, &place)) {
		if (place)
			diag(DIAG_WARNING,
			     "%s/output/%s is of a job whose record is damaged; it is in %s now",
			     state_dir, key, place);
		return;
	}
	l->strays = mem_more(l->strays, l->n_strays, sizeof(char *));
	l->strays[l->n_strays++] = text_copy(key);
}

static int load_output(void *data, int at, const char *name, unsigned char type)
{
	struct load *l = data;
	const struct found wanted = {.key = name};
	struct found *found;

	if (!spec_name_is_file(name) || !file_is_dir(at, name, type))
		return 0;
	found = l->n ? bsearch(&wanted, l->v, l->n, sizeof(*l->v), by_key) : NULL;
	if (!found) {
		find_stray(l, name);
		return 0;
	}
	found->output = true;
	found->unmerged = output_is_unmerged(l->f->config.output, name);
	return 0;
}

static void load_work(void *data)
{
	struct load *l = data;
	cleanup_free char *output = text_print("%s/output", l->f->config.state_dir);

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_key);
	l->work.err = disk_list(AT_FDCWD, output, load_output, l);
	if (l->work.err > 0 || l->work.err == -ENOENT)
		l->work.err = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct found *found = &l->v[i];
		int err = found->text ? spec_snapshot_parse(found->text, strlen(found->text),
							    &found->job)
				      : 0;

		if (!err && found->job && !streq(spec_job_key(found->job), found->key))
			err = -EINVAL;
		if (!err)
			continue;
		diag(DIAG_WARNING,
		     "%s/jobs/%s: its snapshot can't be used; unless the cluster still has the job "
		     "it is not shown",
		     l->f->config.state_dir, found->key);
		spec_job_unref(take_ptr(found->job));
	}
}

static void take_found(struct folders *f, struct found *found)
{
	const struct spec_head *head = record_head(found->r);
	struct entry *e;

	if (found->output || head->dropped || head->state == RECORD_HISTORY) {
		e = add(f, found->key, *head->uid ? head->uid : "");
		e->full = found->output;
		e->unmerged = found->unmerged && !head->dropped;
	}
	/* What has output was launched. */
	if (head->state == RECORD_SUBMITTING && found->output)
		records_note(found->r, &(struct record_change){.state = RECORD_LIVE}, SOON_MS);
	if (found->job) {
		found->job->history = head->state == RECORD_HISTORY;
		store_put(f->config.store, take_ptr(found->job));
	}
	if (head->dropped && found->output)
		/* A crash has cut off the removal of its output. */
		folders_drop_output(f, found->key, NULL, NULL);
}

static void on_loaded(void *data)
{
	struct load *l = data;
	struct folders *f = l->f;
	void (*fn)(void *data, int err) = l->fn;
	void *arg = l->data;
	int err = l->work.err;

	for (size_t i = 0; i < l->n; i++) {
		if (!err)
			take_found(f, &l->v[i]);
		spec_job_unref(l->v[i].job);
		free(l->v[i].text);
	}
	for (size_t i = 0; i < l->n_strays; i++) {
		if (!err)
			output_job_remove(f->config.output, l->strays[i], NULL, NULL);
		free(l->strays[i]);
	}
	free(l->strays);
	free(l->v);
	free(l);
	fn(arg, err);
}

void folders_load(struct folders *f, void (*fn)(void *data, int err), void *data)
{
	struct load *l = new0(struct load);

	*l = (struct load){
		.work = {.run = load_work, .done = on_loaded, .data = l, .group = f->config.group},
		.f = f,
		.fn = fn,
		.data = data,
	};
	records_each(f->config.records, find_record, l);
	work_start(&l->work, f->config.loop);
}

/* --- life --- */

struct folders *folders_new(const struct folders_config *config)
{
	struct folders *f = new0(struct folders);

	f->config = *config;
	loop_timer_init(&f->retry, config->loop, on_retry, f);
	records_set_snapshot(config->records, snapshot_of, f);
	return f;
}

void folders_set_events(struct folders *f, const struct folders_events *events)
{
	f->events = *events;
}

void folders_set_saved(struct folders *f, loop_fn saved, void *data)
{
	f->saved = saved;
	f->saved_data = data;
}

void folders_stop(struct folders *f)
{
	f->stopping = true;
	loop_timer_stop(&f->retry);
}

void folders_free(struct folders *f)
{
	struct entry *e, *next;

	if (!f)
		return;
	HASH_ITER(hh, f->all, e, next)
		entry_free(e);
	free(f);
}
