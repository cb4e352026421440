/* SPDX-License-Identifier: MIT */
/*
 * struct folders has a table of the jobs that have or had output on disk; the key is the job's key.
 * All other data about a job is in its record.
 *
 * A removal of all files of a job, or only of its output, takes several steps on the disk. Each
 * entry has a queue of removals. The first one is in progress, and the others wait. While there are
 * removals, kxfs captures no output of the job.
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
#include "spec/job/status.h"

#define SOON_MS 1000
/* After a watch has shown a submitted job, its record becomes LIVE within this time. */
#define SEEN_MS 500

/* The output of one job on disk. */
struct folder_entry {
	struct folders *f;
	char *key, *uid;
	struct folder_removal *removals; /* the first one is in progress */
	bool full;			 /* true if output is on disk now */
	bool dropped;			 /* true if kxfs has removed output to free space */
	bool unmerged;			 /* see folder.unmerged */
	bool refused; /* true if kxfs can't make the job's record, and has logged this error */
	UT_hash_handle hh;
};

struct folder_removal {
	struct folders *f;
	char *key;
	bool all;	 /* true to remove the record and the output; false for only the output */
	bool recorded;	 /* true if the record on disk shows the removal */
	folders_fn done; /* may be NULL */
	void *data;
	struct folder_removal *next;
};

struct folders {
	struct folders_config config;
	struct folders_events events;
	loop_fn saved;
	void *saved_data;
	struct folder_entry *all;
	struct loop_timer retry; /* runs if the creation of a record has failed */
	bool stopping;
};

static struct folder_entry *find(const struct folders *f, const char *key)
{
	struct folder_entry *e;

	HASH_FIND_STR(f->all, key, e);
	return e;
}

static struct folder_entry *add(struct folders *f, const char *key, const char *uid)
{
	struct folder_entry *e = new0(struct folder_entry);

	e->f = f;
	e->key = text_copy(key);
	e->uid = text_copy(uid);
	HASH_ADD_KEYPTR(hh, f->all, e->key, strlen(e->key), e);
	return e;
}

static void entry_free(struct folder_entry *e)
{
	HASH_DEL(e->f->all, e);
	free(e->key);
	free(e->uid);
	free(e);
}

/* True if kxfs is removing all files of E, or will remove them. */
static bool is_going(const struct folder_entry *e)
{
	for (const struct folder_removal *r = e->removals; r; r = r->next)
		if (r->all)
			return true;
	return false;
}

/* --- the record of a job --- */

/*
 * True if VIEW is the job of the submission R. Compare the UUIDs of the submissions. If VIEW has no
 * UUID (option no_annotations), compare the names, but only if R's name has a random suffix.
 */
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

static struct folder describe(const struct record *r, const struct folder_entry *e)
{
	const struct spec_head *head = r ? record_head(r) : NULL;
	struct folder ret = {0};

	if (head)
		ret = (struct folder){
			.key = head->key,
			.uid = head->uid,
			.own = head->own,
			.dropped = head->dropped,
		};
	else if (e)
		ret = (struct folder){.key = e->key, .uid = e->uid, .dropped = e->dropped};
	ret.output = e;
	ret.unmerged = e && e->unmerged;
	return ret;
}

struct folder folders_of(const struct folders *f, const struct spec_job_view *view)
{
	const struct record *r = record_of(f, view);
	const struct folder_entry *e = find(f, r ? record_head(r)->key : view->meta.uid);

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
	const struct folder_entry *e = find(f, spec_job_key(job));

	return e && !e->removals && streq(e->uid, job->uid);
}

bool folders_has_output(const struct folders *f, const struct spec_job *job)
{
	const struct folder_entry *e = find(f, spec_job_key(job));

	return e && e->full;
}

void folders_bind(struct folders *f, const struct spec_job_view *view)
{
	struct record *r = record_of(f, view);
	const struct spec_head *head = r ? record_head(r) : NULL;
	struct folder_entry *e = head ? find(f, head->key) : NULL;

	if (e && !*e->uid)
		text_set(&e->uid, "%s", view->meta.uid);
	/* held.c makes the record of a held job LIVE later, when the store has the job. */
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
	struct folder_entry *e;

	if (!r)
		r = record_of(f, view);
	e = find(f, r ? record_head(r)->key : uid);
	if ((r && record_is_going(r)) || (e && e->removals))
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
	struct folder_entry *e, *next;

	HASH_ITER(hh, f->all, e, next)
		if (e->refused && !is_going(e))
			folders_save(f, e->uid, false);
}

struct made {
	struct folders *f;
	char *key;
};

static void on_made(void *data, int err)
{
	struct made *m = data;
	struct folders *f = m->f;
	struct folder_entry *e = find(f, m->key);

	if (e && err && !e->refused)
		diag(DIAG_ERROR, "%s: its record %s/jobs/%s can't be created: %s%s", m->key,
		     f->config.state_dir, m->key, strerror(-err),
		     f->stopping ? "" : "; kxfs keeps retrying");
	if (e)
		e->refused = err;
	if (e && err && !f->stopping)
		loop_timer_set(&f->retry, SOON_MS);
	else if (e && !err)
		/* the job may have left jobs/ meanwhile, so save the newest snapshot */
		folders_save(f, e->uid, false);
	free(m->key);
	free(m);
}

/* Make a record of JOB, which has output, but was not submitted with this state directory. */
static void make_record(struct folders *f, const struct spec_job *job)
{
	struct spec_head *head = spec_head_new();
	struct made *m = new0(struct made);

	spec_set(&head->key, job->uid);
	spec_set(&head->uid, job->uid);
	spec_set(&head->id, job->id);
	spec_set(&head->backend, job->backend);
	spec_set(&head->more->namespace, job->namespace);
	head->created = job->created;
	head->state = RECORD_LIVE;
	head->dropped = find(f, job->uid)->dropped;
	m->f = f;
	m->key = text_copy(job->uid);
	records_make(f->config.records, head, &(struct record_rest){.document = ""}, NULL, on_made,
		     m);
}

void folders_save(struct folders *f, const char *uid, bool now)
{
	const struct spec_job *job cleanup_job = store_get_uid(f->config.store, uid);
	struct record *r = records_by_uid(f->config.records, uid);
	const struct folder_entry *e = find(f, uid);
	const enum record_state state = job && job->history ? RECORD_HISTORY : RECORD_LIVE;

	if (!job || job->held || (r && record_is_going(r)))
		return;
	if (r)
		records_note(r, &(struct record_change){.state = state}, now ? 0 : SOON_MS);
	else if (e && !is_going(e) && streq(e->uid, uid) && streq(spec_job_key(job), uid))
		make_record(f, job);
	f->saved(f->saved_data);
}

/* --- removals --- */

static void removal_start(struct folder_removal *r);

static struct folder_removal *removal_new(struct folders *f, const char *key, folders_fn done,
					  void *data)
{
	struct folder_removal *r = new0(struct folder_removal);

	*r = (struct folder_removal){.f = f, .key = text_copy(key), .done = done, .data = data};
	group_enter(f->config.group);
	return r;
}

static void removal_free(struct folder_removal *r, int err)
{
	struct group *group = r->f->config.group;

	if (r->done)
		r->done(r->data, err);
	else if (err)
		diag(DIAG_ERROR, "%s can't be removed: %s", r->key, strerror(-err));
	free(r->key);
	free(r);
	group_leave(group);
}

/* End a removal. After the removal of all files, free the entry, and end its other removals. */
static void removal_ended(void *data, int err)
{
	struct folder_removal *r = data;
	struct folder_entry *e = find(r->f, r->key);
	struct folder_removal *next, *rest = NULL;

	if (e && e->removals == r) {
		e->removals = r->next;
		r->f->events.freed(r->f->events.data, e->uid);
		/* After an error, keep the entry if R's caller or another removal may retry. */
		if (r->all && (!err || (!r->done && !e->removals))) {
			rest = take_ptr(e->removals);
			entry_free(e);
		} else if (e->removals) {
			removal_start(e->removals);
		}
	}
	removal_free(r, err);
	LL_FOREACH_SAFE(rest, r, next)
		removal_free(r, 0);
}

/* ERR is 0 if the record was removed, or did not exist. In this case, remove the output, too. */
static void on_unlinked(void *data, int err)
{
	struct folder_removal *r = data;

	if (err || !find(r->f, r->key))
		return removal_ended(r, err);
	output_job_remove(r->f->config.output, r->key, removal_ended, r);
}

static void drop_record(struct folder_removal *r);

static void on_output_dropped(void *data, int err)
{
	struct folder_removal *r = data;
	struct record *record = records_by_key(r->f->config.records, r->key);

	if (!err && !r->recorded && record && !record_is_going(record))
		records_note(record,
			     &(struct record_change){.state = record_head(record)->state,
						     .dropped = true},
			     0);
	removal_ended(r, err);
}

/*
 * Remove the output only when the record on disk shows the removal. Otherwise the next mount would
 * fetch the output again, or would not report it as missing. But if the disk is too full for the
 * record, remove the output first.
 */
static void on_drop_recorded(void *data, int err)
{
	struct folder_removal *r = data;
	struct folder_entry *e = find(r->f, r->key);

	if (err == -ESTALE)
		return drop_record(r);
	if (err && !file_is_full(err))
		return removal_ended(r, err);
	if (e) {
		e->full = false;
		e->dropped = true;
	}
	r->recorded = !err;
	output_job_remove(r->f->config.output, r->key, on_output_dropped, r);
}

static void drop_record(struct folder_removal *r)
{
	struct record *record = records_by_key(r->f->config.records, r->key);
	const struct record_change change = {.state = record ? record_head(record)->state : 0,
					     .dropped = true};

	if (record && !record_is_going(record))
		records_commit(record, &change, on_drop_recorded, r);
	else
		on_drop_recorded(r, 0);
}

/* Return KEY's record; NULL if there is none, or if it is held or being removed. */
static struct record *removable(const struct folders *f, const char *key)
{
	struct record *r = records_by_key(f->config.records, key);

	return r && !record_is_going(r) && record_head(r)->state != RECORD_HELD ? r : NULL;
}

static void removal_start(struct folder_removal *r)
{
	struct record *record = removable(r->f, r->key);

	if (!r->all)
		return drop_record(r);
	if (record)
		records_remove(record, false, on_unlinked, r);
	else
		on_unlinked(r, 0);
}

static void nothing_there(void *data)
{
	removal_free(data, 0);
}

void folders_remove(struct folders *f, const char *key, folders_fn done, void *data)
{
	struct folder_entry *e = find(f, key);
	struct folder_removal *r = removal_new(f, key, done, data);

	if (!e && !removable(f, key))
		return loop_post(f->config.loop, nothing_there, r);
	r->all = true;
	if (e)
		LL_APPEND(e->removals, r);
	if (!e || e->removals == r)
		removal_start(r);
}

void folders_drop_output(struct folders *f, const char *key, folders_fn done, void *data)
{
	struct folder_entry *e = find(f, key);
	struct folder_removal *r = removal_new(f, key, done, data);

	if (!e)
		return loop_post(f->config.loop, nothing_there, r);
	LL_APPEND(e->removals, r);
	if (e->removals == r)
		removal_start(r);
}

/* --- the start --- */

/* A record that kxfs found at the start. */
struct folder_found {
	struct record *r;
	const char *key;
	char *text; /* the snapshot in the record */
	struct spec_job *job;
	bool output, unmerged;
};

struct folder_load {
	struct work work;
	struct folders *f;
	struct folder_found *v;
	size_t n;
	char **strays; /* keys of output that has no record */
	size_t n_strays;
	void (*fn)(void *data, int err);
	void *data;
};

static void find_record(void *data, struct record *r)
{
	struct folder_load *l = data;
	const struct spec_head *head = record_head(r);
	struct folder_found found = {.r = r, .key = head->key};

	if (head->state == RECORD_LIVE || head->state == RECORD_HISTORY)
		found.text = record_take_part(r, RECORD_SNAPSHOT);
	l->v = mem_more(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = found;
}

static int by_key(const void *a, const void *b)
{
	const struct folder_found *x = a, *y = b;

	return strcmp(x->key, y->key);
}

/*
 * Handle the output KEY, which has no usable record. If kxfs has moved a damaged record of this job
 * aside, move the output aside, too. Otherwise a crash has interrupted the removal of the output.
 * Then add KEY to STRAYS, so that kxfs removes the output later.
 */
static void find_stray(struct folder_load *l, const char *key)
{
	const char *state_dir = l->f->config.state_dir;
	cleanup_free char *moved = NULL;

	if (l->f->config.passive)
		return;
	if (record_file_output_aside(state_dir, key, &moved)) {
		if (moved)
			diag(DIAG_WARNING,
			     "%s/output/%s: the job's record is damaged; kxfs has moved this "
			     "directory to %s",
			     state_dir, key, moved);
		return;
	}
	l->strays = mem_more(l->strays, l->n_strays, sizeof(char *));
	l->strays[l->n_strays++] = text_copy(key);
}

static int load_output(void *data, int at, const char *name, unsigned char type)
{
	struct folder_load *l = data;
	const struct folder_found wanted = {.key = name};
	struct folder_found *found;

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
	struct folder_load *l = data;
	cleanup_free char *output = text_print("%s/output", l->f->config.state_dir);

	if (l->n)
		qsort(l->v, l->n, sizeof(*l->v), by_key);
	l->work.err = disk_list(AT_FDCWD, output, load_output, l);
	if (l->work.err > 0 || l->work.err == -ENOENT)
		l->work.err = 0;
	for (size_t i = 0; i < l->n; i++) {
		struct folder_found *found = &l->v[i];
		int err = found->text ? spec_snapshot_parse(found->text, strlen(found->text),
							    &found->job)
				      : 0;

		if (!err && found->job && !streq(spec_job_key(found->job), found->key))
			err = -EINVAL;
		if (!err)
			continue;
		diag(DIAG_WARNING,
		     "%s/jobs/%s: kxfs can't use this snapshot of a job, and shows the job only if "
		     "the cluster still has it",
		     l->f->config.state_dir, found->key);
		spec_job_unref(take_ptr(found->job));
	}
}

static void take_found(struct folders *f, struct folder_found *found)
{
	const struct spec_head *head = record_head(found->r);
	struct folder_entry *e;

	if (found->output || head->dropped || head->state == RECORD_HISTORY) {
		e = add(f, found->key, *head->uid ? head->uid : "");
		e->full = found->output;
		e->unmerged = found->unmerged && !head->dropped;
	}
	/* The job has output, so it was launched. Change SUBMITTING to LIVE. */
	if (head->state == RECORD_SUBMITTING && found->output)
		records_note(found->r, &(struct record_change){.state = RECORD_LIVE}, SOON_MS);
	if (found->job) {
		found->job->history = head->state == RECORD_HISTORY;
		store_put(f->config.store, take_ptr(found->job));
	}
	if (head->dropped && found->output) /* a crash has interrupted the removal of the output */
		folders_drop_output(f, found->key, NULL, NULL);
}

static void on_loaded(void *data)
{
	struct folder_load *l = data;
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
	struct folder_load *l = new0(struct folder_load);

	*l = (struct folder_load){
		.work = {.run = load_work, .done = on_loaded, .data = l, .group = f->config.group},
		.f = f,
		.fn = fn,
		.data = data,
	};
	records_each(f->config.records, find_record, l);
	work_start(&l->work, f->config.loop);
}

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
	struct folder_entry *e, *next;

	if (!f)
		return;
	HASH_ITER(hh, f->all, e, next)
		entry_free(e);
	free(f);
}
