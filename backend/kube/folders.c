/* SPDX-License-Identifier: MIT */
/*
 * The table of folders by key, and the snapshots that are to be written, one after the other: soon after a job has
 * changed, and again if it has changed meanwhile. Each time the newest snapshot in the store is written.
 *
 * What is done to a folder, one thing at a time:
 *
 *	state	  what is under way			what ends it		next
 *	READY	  nothing				folders_remove		REMOVING
 *						folders_drop_output		DROPPING
 *	DROPPING  its output is being removed		that is done		READY
 *						folders_remove			DROPPING, then REMOVING
 *	REMOVING  all of it is being removed		that is done		(freed)
 */
#include "backend/kube/folders.h"

#include <errno.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/work.h"
#include "backend/kube/folder_files.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

#define SOON_MS 1000
/* How long submissions are collected before their folders are synced together. */
#define SYNC_MS 500

enum state { FOLDER_READY, FOLDER_DROPPING, FOLDER_REMOVING };

struct entry {
	struct folder folder;
	struct folders *f;
	enum state state;
	bool full;	/* there is output in the folder now */
	bool removal;	/* it is to be REMOVING as soon as it is READY and not UNDER_WAY */
	bool refused;	/* the disk did not take the last snapshot, and a message has said so */
	bool submitted; /* it was submitted by this mount, so STATE/submissions may have its file */
	bool under_way; /* its submission has not been answered */
	struct waiter *waiters;	   /* those who wait for its removal */
	struct work work;	   /* the first step of the removal */
	UT_hash_handle hh;	   /* by key */
	UT_hash_handle hh_uid;	   /* by uid, as soon as that is known */
	struct entry *prev, *next; /* those whose uid is not known */
};

struct waiter {
	folders_fn fn;
	void *data;
	struct waiter *next;
};

/* A snapshot that is to be written. */
struct save {
	struct work work;
	struct folders *f;
	char *uid;
	const struct spec_job *job; /* the snapshot, while it is being written */
	struct save *prev, *next;
	UT_hash_handle hh; /* by uid */
};

struct folders {
	struct folders_config config;
	struct folders_events events;
	loop_fn saved;
	void *saved_data;
	struct entry *all, *by_uid, *unknown;
	/* The table by uid, and the order in which they are written. */
	struct save *saves, *save_list;
	struct loop_timer save_timer;
	bool saving; /* a snapshot is being written */
	/* Syncs of submissions that were answered; they wait for SYNC_TIMER. */
	struct change *syncs;
	struct loop_timer sync_timer;
	bool stopping;
};

static struct entry *find(const struct folders *f, const char *key)
{
	struct entry *e;

	HASH_FIND_STR(f->all, key, e);
	return e;
}

static struct entry *find_uid(const struct folders *f, const char *uid)
{
	struct entry *e;

	HASH_FIND(hh_uid, f->by_uid, uid, strlen(uid), e);
	return e;
}

/* The job of E has the uid UID. */
static void learn(struct entry *e, const char *uid)
{
	struct folders *f = e->f;

	if (*e->folder.uid || !*uid)
		return;
	DL_DELETE(f->unknown, e);
	text_set(&e->folder.uid, "%s", uid);
	HASH_ADD_KEYPTR(hh_uid, f->by_uid, e->folder.uid, strlen(uid), e);
}

static struct entry *add(struct folders *f, const char *key, const char *id, const char *uid)
{
	struct entry *e = new0(struct entry);

	e->f = f;
	e->folder.key = text_copy(key);
	e->folder.id = text_copy(id);
	e->folder.uid = text_copy("");
	HASH_ADD_KEYPTR(hh, f->all, e->folder.key, strlen(e->folder.key), e);
	DL_APPEND(f->unknown, e);
	learn(e, uid);
	return e;
}

static void entry_free(struct entry *e)
{
	struct folders *f = e->f;

	HASH_DELETE(hh, f->all, e);
	if (*e->folder.uid)
		HASH_DELETE(hh_uid, f->by_uid, e);
	else
		DL_DELETE(f->unknown, e);
	free(e->folder.key);
	free(e->folder.id);
	free(e->folder.uid);
	free(e->folder.file);
	free(e);
}

/* --- whose a folder is --- */

/* Without annotations (no_annotations) only the object's name can tell, if nobody else would choose that. */
static bool is_submission(const struct folder *folder, const struct spec_job_view *view)
{
	const char *dash = strrchr(folder->id, '-');

	if (!folder->own || !streq(folder->id, view->meta.name))
		return false;
	if (*view->submission)
		return streq(folder->key, view->submission);
	return dash && spec_name_is_suffix(dash + 1);
}

static bool is_going(const struct entry *e)
{
	return e->removal || e->state == FOLDER_REMOVING;
}

static struct entry *find_of(const struct folders *f, const struct spec_job_view *view)
{
	struct entry *e = find_uid(f, view->meta.uid);

	if (e)
		return is_going(e) ? NULL : e;
	DL_FOREACH(f->unknown, e)
		if (is_submission(&e->folder, view))
			return is_going(e) ? NULL : e;
	return NULL;
}

const struct folder *folders_find(const struct folders *f, const char *key)
{
	const struct entry *e = find(f, key);

	return e ? &e->folder : NULL;
}

const struct folder *folders_of(const struct folders *f, const struct spec_job_view *view)
{
	const struct entry *e = find_of(f, view);

	return e ? &e->folder : NULL;
}

bool folders_awaits(const struct folders *f, const char *id)
{
	const struct entry *e;

	DL_FOREACH(f->unknown, e)
		if (streq(e->folder.id, id))
			return true;
	return false;
}

void folders_each(struct folders *f, void (*fn)(void *data, const struct folder *folder),
		  void *data)
{
	struct entry *e, *next;

	HASH_ITER(hh, f->all, e, next)
		fn(data, &e->folder);
}

bool folders_holds(const struct folders *f, const struct spec_job *job)
{
	const struct entry *e = find(f, spec_job_key(job));

	return e && e->folder.output && !is_going(e) && streq(e->folder.uid, job->uid);
}

bool folders_has_output(const struct folders *f, const struct spec_job *job)
{
	const struct entry *e = find(f, spec_job_key(job));

	return e && e->full;
}

/* Output may come into the folder of E again. */
static void freed(const struct entry *e)
{
	e->f->events.freed(e->f->events.data, e->folder.uid);
}

/* --- submissions --- */

int folders_reserve(struct folders *f, const char *id, const char *submission)
{
	struct entry *e;

	if (find(f, submission) || folders_awaits(f, id))
		return -EEXIST;
	e = add(f, submission, id, "");
	e->folder.own = e->submitted = e->under_way = true;
	return 0;
}

void folders_release(struct folders *f, const char *submission)
{
	entry_free(find(f, submission));
}

int folders_resume(struct folders *f, const char *submission)
{
	struct entry *e = find(f, submission);

	if (!e || is_going(e) || *e->folder.uid || !e->folder.own)
		return -EEXIST;
	e->folder.doubt = 0;
	e->submitted = e->under_way = true;
	return 0;
}

/* Something that is being done to a folder on the disk. */
struct change {
	struct work work;
	struct folders *f;
	char *key;
	char *id;	 /* the job, for messages */
	char *uid;	 /* uid of the folder's job */
	bool recorded;	 /* that its output is removed */
	folders_fn done; /* called when the change is done; may be NULL */
	void *data;
	struct change *next; /* the next one to be synced */
};

static struct change *change_new(struct folders *f, const char *key)
{
	const struct entry *e = find(f, key);
	struct change *c = new0(struct change);

	c->f = f;
	c->key = text_copy(key);
	c->id = text_copy(e ? e->folder.id : key);
	c->uid = text_copy(e ? e->folder.uid : "");
	return c;
}

static void change_start(struct change *c, struct work work)
{
	c->work = work;
	c->work.data = c;
	c->work.group = c->f->config.group;
	work_start(&c->work, c->f->config.loop);
}

static void change_free(struct change *c)
{
	free(c->key);
	free(c->id);
	free(c->uid);
	free(c);
}

static void sync_work(void *data)
{
	struct change *all = data, *c;

	LL_FOREACH(all, c)
		c->work.err = folder_files_settle(c->f->config.state_dir, c->key, c->uid);
}

static void on_synced(void *data)
{
	struct change *all = data, *c, *next;

	LL_FOREACH_SAFE(all, c, next) {
		if (c->work.err)
			diag(DIAG_WARNING, "%s: what it was made from may not be on disk yet: %s",
			     c->id, strerror(-c->work.err));
		change_free(c);
	}
}

static void sync_now(void *data)
{
	struct folders *f = data;

	loop_timer_stop(&f->sync_timer);
	if (f->syncs)
		change_start(take_ptr(f->syncs),
			     (struct work){.run = sync_work, .done = on_synced});
}

/*
 * Soon sync the submission of E, with its job's uid as it is then; until then STATE/submissions has all of it. A sync
 * at once would hold up the answer and the next submission.
 */
static void sync_later(struct entry *e)
{
	struct folders *f = e->f;
	struct change *c = change_new(f, e->folder.key);

	LL_PREPEND(f->syncs, c);
	if (f->stopping)
		sync_now(f);
	else if (!loop_timer_is_set(&f->sync_timer))
		loop_timer_set(&f->sync_timer, SYNC_MS);
}

bool folders_was_seen(const struct folders *f, const char *submission)
{
	const struct entry *e = find(f, submission);

	/* Only whoever has seen the job go removes the folder meanwhile. */
	return e && (*e->folder.uid || e->removal);
}

void folders_submitted(struct folders *f, const char *submission, const char *uid)
{
	struct entry *e = find(f, submission);
	bool learned;

	if (e && e->under_way && e->removal) {
		e->under_way = e->removal = false;
		folders_remove(f, submission, NULL, NULL);
		return;
	}
	if (!e || is_going(e))
		return;
	learned = *uid && !*e->folder.uid;
	learn(e, uid);
	if (learned || e->under_way)
		sync_later(e);
	e->under_way = false;
}

void folders_doubt(struct folders *f, const char *submission, const char *file, uint64_t ms)
{
	struct entry *e = find(f, submission);

	if (!e || is_going(e) || *e->folder.uid)
		return;
	e->folder.doubt = loop_now_ms() + ms;
	if (file && !e->folder.file)
		e->folder.file = text_copy(file);
	if (!e->folder.written)
		e->folder.written = loop_time_ns();
	e->under_way = false;
}

const struct folder *folders_bind(struct folders *f, const struct spec_job_view *view)
{
	struct entry *e = find_of(f, view);
	bool doubt = e && e->folder.doubt;

	if (!e || *e->folder.uid)
		return NULL;
	learn(e, view->meta.uid);
	e->folder.doubt = 0;
	/* While the submission is not answered, folders_submitted will sync it. */
	if (!e->under_way)
		sync_later(e);
	return doubt ? &e->folder : NULL;
}

/* --- folders that are removed --- */

static void say_left(const char *id, int err)
{
	if (err < 0)
		diag(DIAG_ERROR, "%s: its directory can't be removed: %s", id, strerror(-err));
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

/* The folder of E is gone: free E. */
static void gone(struct entry *e)
{
	struct waiter *waiters = take_ptr(e->waiters);

	freed(e);
	entry_free(e);
	tell(waiters, 0);
}

static void on_removed(void *data, int err)
{
	struct entry *e = data;
	struct waiter *waiters;

	if (err < 0 && e->waiters && e->folder.output) {
		waiters = take_ptr(e->waiters);
		e->state = FOLDER_READY;
		e->removal = false;
		freed(e);
		tell(waiters, err);
		return;
	}
	say_left(e->folder.id, err);
	gone(e);
}

static void forget_work(void *data)
{
	struct entry *e = data;

	/* If this fails, the next start makes the folder again, and removes it since there is no such job. */
	(void)folder_files_forget(e->f->config.state_dir, e->folder.key);
}

static void remove_rest(void *data)
{
	struct entry *e = data;

	output_job_remove(e->f->config.output, e->folder.key, on_removed, e);
}

static void remove_now(struct entry *e)
{
	e->state = FOLDER_REMOVING;
	/* A start makes the folder of each submission again that it finds in STATE/submissions. */
	if (!e->submitted)
		return remove_rest(e);
	e->work = (struct work){.run = forget_work,
				.done = remove_rest,
				.data = e,
				.group = e->f->config.group};
	work_start(&e->work, e->f->config.loop);
}

static void change_end(void *data, int err)
{
	struct change *c = data;

	if (c->done)
		c->done(c->data, err);
	else
		say_left(c->id, err);
	change_free(c);
}

void folders_remove(struct folders *f, const char *key, folders_fn done, void *data)
{
	struct entry *e = find(f, key);

	if (!e) {
		struct change *c = change_new(f, key);

		c->done = done;
		c->data = data;
		return output_job_remove(f->config.output, key, change_end, c);
	}
	if (done) {
		struct waiter *w = new0(struct waiter);

		*w = (struct waiter){.fn = done, .data = data};
		LL_APPEND(e->waiters, w);
	}
	if (e->state == FOLDER_READY && (done || !e->under_way))
		remove_now(e);
	else
		e->removal = true;
}

/* What was being done to E is done: it is READY, or is removed next. */
static void ready(struct entry *e)
{
	e->state = FOLDER_READY;
	if (e->removal)
		remove_now(e);
}

/* --- output that is removed --- */

static void drop_end(struct change *c, int err)
{
	struct entry *e = find(c->f, c->key);

	if (e) {
		freed(e);
		ready(e);
	}
	change_end(c, err);
}

static void on_noted(void *data)
{
	struct change *c = data;

	if (c->work.err)
		diag(DIAG_ERROR, "%s: that its output is removed can't be recorded: %s", c->id,
		     strerror(-c->work.err));
	drop_end(c, 0);
}

static void on_dropped(void *data, int err)
{
	struct change *c = data;

	if (err || !c->work.err)
		return drop_end(c, err);
	c->work.done = on_noted;
	work_start(&c->work, c->f->config.loop);
}

static void nothing_dropped(void *data)
{
	change_end(data, 0);
}

/*
 * The file `dropped` is written before the output goes: else the next mount would fetch all of it again, or not report
 * that it is missing. On a full disk it can only be written when the removed output has made room.
 */
static void drop_rest(void *data)
{
	struct change *c = data;
	struct entry *e = find(c->f, c->key);
	const bool keeps = c->work.err && !file_is_full(c->work.err) && !c->recorded;

	if (e) {
		e->full &= keeps;
		e->folder.dropped = !keeps;
	}
	if (keeps)
		return drop_end(c, c->work.err);
	output_logs_remove(c->f->config.output, c->key, on_dropped, c);
}

static void drop_work(void *data)
{
	struct change *c = data;

	c->work.err = folder_files_drop(c->f->config.state_dir, c->key, c->uid);
}

void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data)
{
	struct entry *e = find(f, key);
	struct change *c = change_new(f, key);

	c->done = done;
	c->data = data;
	if (!e || e->state != FOLDER_READY) {
		loop_post(f->config.loop, nothing_dropped, c);
		return;
	}
	c->recorded = e->folder.dropped;
	e->state = FOLDER_DROPPING;
	e->folder.dropped = true;
	change_start(c, (struct work){.run = drop_work, .done = drop_rest});
}

int folders_claim(struct folders *f, const char *id, const struct spec_job_view *view)
{
	struct entry *e = find_uid(f, view->meta.uid);

	if (!e)
		e = find_of(f, view);
	if (e && (e->state != FOLDER_READY || e->removal))
		return -EINPROGRESS;
	if (!e && find(f, view->meta.uid))
		return -EBUSY;
	if (!e)
		e = add(f, view->meta.uid, id, view->meta.uid);
	learn(e, view->meta.uid);
	text_set(&e->folder.id, "%s", id);
	e->folder.output = e->full = true;
	return 0;
}

/* --- snapshots --- */

static void save_free(struct save *s)
{
	group_leave(s->f->config.group);
	spec_job_unref(s->job);
	free(s->uid);
	free(s);
}

static void save_next(void *data);

static void save_work(void *data)
{
	struct save *s = data;

	s->work.err = folder_files_save(s->f->config.state_dir, s->job);
}

static void on_saved(void *data)
{
	struct save *s = data;
	struct folders *f = s->f;
	struct entry *e = find(f, spec_job_key(s->job));
	/* On a slow disk the output may not have made the folder yet; or something else has the folder's name. */
	bool missing = s->work.err == -ENOENT || s->work.err == -ELOOP || s->work.err == -ENOTDIR;
	bool again = s->work.err && !f->stopping && folders_holds(f, s->job);

	if (s->work.err && !missing && !(e && e->refused))
		diag(DIAG_ERROR, "%s: what is known of it can't be kept: %s%s", s->job->id,
		     strerror(-s->work.err), again ? "; trying again every second" : "");
	if (e)
		e->refused = s->work.err && !missing;
	f->saving = false;
	f->saved(f->saved_data);
	if (again)
		folders_save(f, s->uid, false); /* it is written again after the others that wait */
	save_free(s);
	if (!again)
		save_next(f);
}

/* Write the snapshot of S, which is in no list any more, or free S if there is nothing to write. */
static void save_one(struct folders *f, struct save *s)
{
	s->job = store_get_uid(f->config.store, s->uid);
	if (!s->job || !folders_holds(f, s->job)) {
		save_free(s);
		return;
	}
	f->saving = true;
	s->work = (struct work){.run = save_work, .done = on_saved, .data = s};
	work_start(&s->work, f->config.loop);
}

static void save_next(void *data)
{
	struct folders *f = data;
	struct save *s, *next;

	DL_FOREACH_SAFE(f->save_list, s, next) {
		if (f->saving)
			return;
		DL_DELETE(f->save_list, s);
		HASH_DEL(f->saves, s);
		save_one(f, s);
	}
}

void folders_save(struct folders *f, const char *uid, bool now)
{
	struct save *s;

	HASH_FIND_STR(f->saves, uid, s);
	if (!s) {
		s = new0(struct save);
		s->f = f;
		s->uid = text_copy(uid);
		group_enter(f->config.group);
		HASH_ADD_KEYPTR(hh, f->saves, s->uid, strlen(s->uid), s);
		DL_APPEND(f->save_list, s);
	}
	if (now || f->stopping)
		save_next(f);
	else if (!loop_timer_is_set(&f->save_timer))
		loop_timer_set(&f->save_timer, SOON_MS);
}

/* --- the start --- */

struct load {
	struct work work;
	struct folders *f;
	struct folder_found *found;
	void (*fn)(void *data, int err);
	void *data;
};

static void load_work(void *data)
{
	struct load *l = data;

	l->work.err = folder_files_load(l->f->config.state_dir, &l->found);
	for (struct folder_found *found = l->found; found; found = found->next)
		found->unmerged = found->snapshot && !found->dropped &&
				  output_is_unmerged(l->f->config.output, found->key);
}

static void take_found(struct folders *f, struct folder_found *found)
{
	const char *uid = found->snapshot  ? found->snapshot->uid
			  : found->dropped ? found->dropped
			  : found->uid	   ? found->uid
			  : found->own	   ? ""
					   : found->key;
	const struct entry *other = find_uid(f, uid);
	struct entry *e;

	if (other) {
		diag(DIAG_WARNING,
		     "%s/output/%s is of the same job as %s/output/%s, by its uid: it is left alone "
		     "and not shown",
		     f->config.state_dir, found->key, f->config.state_dir, other->folder.key);
		return;
	}
	e = add(f, found->key, found->id ? found->id : "", uid);
	e->folder.own = found->own;
	e->folder.file = take_ptr(found->file);
	e->folder.written = found->written;
	e->folder.output = e->full = found->snapshot || found->printed;
	e->folder.dropped = found->dropped;
	e->folder.unmerged = found->unmerged;
	if (found->snapshot)
		store_put(f->config.store, take_ptr(found->snapshot));
	if (found->dropped)
		/* A crash may have cut off the removal of its output. */
		folders_drop_output(f, found->key, NULL, NULL);
}

static void on_loaded(void *data)
{
	struct load *l = data;
	struct folders *f = l->f;
	void (*fn)(void *data, int err) = l->fn;
	void *arg = l->data;
	int err = l->work.err;
	struct folder_found *found;

	while ((found = l->found)) {
		l->found = found->next;
		if (!err)
			take_found(f, found);
		folder_found_free(found);
	}
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
	work_start(&l->work, f->config.loop);
}

/* --- life --- */

struct folders *folders_new(const struct folders_config *config)
{
	struct folders *f = new0(struct folders);

	f->config = *config;
	loop_timer_init(&f->save_timer, config->loop, save_next, f);
	loop_timer_init(&f->sync_timer, config->loop, sync_now, f);
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
	loop_timer_stop(&f->save_timer);
	save_next(f);
	sync_now(f);
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
