/* SPDX-License-Identifier: MIT */
/*
 * Changes finished jobs, and recovers all jobs at the start. Only this file changes the records of
 * finished jobs.
 *
 * At a start, kxfs must find out whether the job of a SUBMITTING record was launched. A helper
 * makes a file before it starts the program. So if kxfs finds such a file, the job was launched.
 * kxfs also assumes a launch if the machine has rebooted since the submission, because a power cut
 * may have removed the file. Otherwise nothing was started.
 */
#include "backend/local/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/process.h"
#include "backend/base/work.h"
#include "backend/jobs/expiry.h"
#include "backend/local/record.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

struct saved_update {
	struct saved_update *prev, *next;
	struct saved *saved;
	enum saved_change kind;
	struct backend_request *rq;
	char *uid;
	const struct spec_job *job; /* snapshot at the beginning of the change */
	struct record *entry;
};

struct recover;

struct saved {
	struct backend *b;
	struct recover *recover; /* NULL after the start */
	struct group *group;
	struct local_jobs *jobs;
	struct expiry *expiry;	      /* NULL when the mount is ending */
	struct saved_update *changes; /* a queue; the first one is in progress */
};

/* --- changes --- */

static void begin_change(struct saved_update *c);

/* Answer the request of C with ERR and its reason TEXT, and begin the next change. */
static void end_change(struct saved_update *c, int err, const char *text)
{
	struct saved *saved = c->saved;

	if (c->rq)
		backend_answer(c->rq, err, c->rq->id, text);
	else if (text)
		diag(DIAG_ERROR, "%s", text);
	DL_DELETE(saved->changes, c);
	group_leave(saved->group);
	if (saved->changes)
		begin_change(saved->changes);
	if (c->kind == SAVED_DROP && c->job)
		expiry_dropped(saved->expiry, c->job->id, err);
	else if (err == 0)
		(c->kind == SAVED_EXPIRE ? expiry_now : expiry_soon)(saved->expiry);
	free(c->uid);
	spec_job_unref(c->job);
	free(c);
}

static void fail(struct saved_update *c, int err, const char *what)
{
	cleanup_free char *text = text_print("%s: %s: %s", c->job->id, what, strerror(-err));

	return end_change(c, err, text);
}

static void on_marked(void *data, int err)
{
	struct saved_update *c = data;
	struct spec_job *job;

	if (err)
		return fail(c, err, "its record can't be changed");
	job = spec_job_copy(c->job);
	job->history = true;
	job->actions = 0;
	job->changed = record_head(c->entry)->since;
	store_put(c->saved->b->store, job);
	return end_change(c, 0, NULL);
}

static void on_dropped(void *data, int err)
{
	return end_change(data, err, NULL);
}

/*
 * The record on disk now shows that the output is dropped. So if kxfs crashes, the next start
 * removes the rest of the output. If the disk is too full to write the record, remove the output
 * anyway, to make space. The next start then knows from the missing logs/ that the output was
 * dropped. This is enough for a local job. kube/folders.c, which removes the output of a cluster's
 * job, must write the record again: otherwise, the next mount would fetch the missing logs.
 */
static void on_drop_noted(void *data, int err)
{
	struct saved_update *c = data;
	struct spec_job *job;

	if (err && !file_is_full(err))
		return end_change(c, err, NULL);
	job = spec_job_copy(c->job);
	job->dropped = true;
	store_put(c->saved->b->store, job);
	output_job_remove(c->saved->b->output, spec_job_key(c->job), on_dropped, c);
}

static void begin_drop(struct saved_update *c)
{
	records_commit(c->entry,
		       &(struct record_change){.state = record_head(c->entry)->state,
					       .dropped = true},
		       on_drop_noted, c);
}

static void on_removed(void *data, int err)
{
	struct saved_update *c = data;

	if (err)
		return fail(c, err, "its record can't be removed");
	store_remove(c->saved->b->store, c->job->uid);
	return end_change(c, 0, NULL);
}

/* Remove the record last. If the removal of the output has failed, users can then repeat it. */
static void on_output_removed(void *data, int err)
{
	struct saved_update *c = data;

	if (err)
		return fail(c, err, "its directory can't be removed");
	return records_remove(c->entry, false, on_removed, c);
}

static void begin_change(struct saved_update *c)
{
	struct saved *saved = c->saved;

	/* An earlier change in the queue may have moved or removed the job. */
	c->job = store_get_uid(saved->b->store, c->uid);
	c->entry = c->job ? records_by_key(saved->b->records, spec_job_key(c->job)) : NULL;
	if (!c->entry || (c->kind == SAVED_CANCEL && c->job->history))
		end_change(c, -ENOENT, NULL);
	else if (c->kind == SAVED_CANCEL)
		records_mark(c->entry, on_marked, c);
	else if (c->kind == SAVED_DROP)
		begin_drop(c);
	else
		output_job_remove(saved->b->output, spec_job_key(c->job), on_output_removed, c);
}

void saved_change(struct saved *saved, enum saved_change kind, const char *uid,
		  struct backend_request *rq)
{
	struct saved_update *c = new0(struct saved_update);

	c->saved = saved;
	c->kind = kind;
	c->uid = text_copy(uid);
	c->rq = rq;
	group_enter(saved->group);
	DL_APPEND(saved->changes, c);
	if (saved->changes == c)
		begin_change(c);
}

/* --- expiry --- */

static bool may_go(void *data, const struct spec_job *job)
{
	const struct saved *saved = data;

	return !job->held && !local_jobs_find(saved->jobs, job->id);
}

static bool has_output(void *data, const struct spec_job *job)
{
	return !job->dropped;
}

static bool is_busy(void *data)
{
	const struct saved *saved = data;

	return saved->changes;
}

static void retire_job(void *data, const struct spec_job *job)
{
	saved_change(data, SAVED_CANCEL, job->uid, NULL);
}

static void remove_job(void *data, const struct spec_job *job)
{
	const struct saved *saved = data;

	backend_expired(saved->b, spec_job_key(job));
	saved_change(data, SAVED_EXPIRE, job->uid, NULL);
}

static void drop_output(void *data, const struct spec_job *job)
{
	saved_change(data, SAVED_DROP, job->uid, NULL);
}

bool saved_is_settled(struct saved *saved, const struct spec_job *job)
{
	return may_go(saved, job) && !is_busy(saved);
}

void saved_soon(struct saved *saved)
{
	expiry_soon(saved->expiry);
}

/* --- the start --- */

/* a record that was read at the start */
struct item {
	enum {
		ITEM_OTHER, /* the job is not local, is held, or was never launched */
		ITEM_NEVER, /* SUBMITTING, but not launched, so held.c handles the job */
		ITEM_OVER,  /* the job has ended */
		ITEM_RUNS   /* the job may still run */
	} kind;
	const struct spec_head *head;
	bool has_output; /* the job has a folder in STATE/output */
	/* With ITEM_OVER: */
	struct spec_job *job;
	bool left;     /* the output was dropped, but some of it is on disk */
	bool unmerged; /* the merged log may lack lines */
	/* With ITEM_RUNS: */
	struct spec_record *rec;
	struct task_found *found; /* the newest attempts */
};

struct recover {
	struct saved *saved;
	struct item *items; /* one for each record, ordered by key */
	size_t n;
	struct orphan **orphans;
	size_t n_orphans;
	int err;
	struct work work;
};

static void item_clear(struct item *item)
{
	spec_job_unref(item->job);
	for (size_t i = 0; item->found && i < item->rec->job->n_replicas; i++)
		if (item->found[i].fd >= 0)
			close(item->found[i].fd);
	free(item->found);
	spec_record_free(item->rec);
}

static void recover_free(struct recover *r)
{
	for (size_t i = 0; i < r->n; i++)
		item_clear(&r->items[i]);
	while (r->n_orphans)
		orphan_free(r->orphans[--r->n_orphans]);
	free(r->items);
	free(r->orphans);
	free(r);
}

/* True if ERR is a temporary shortage, so that a later start of kxfs may succeed. */
static bool is_shortage(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS;
}

/*
 * Handle the folder KEY in STATE/output, which has no usable record. If a helper lives there, the
 * job is an orphan. Otherwise, if the record is in STATE/aside, move the folder there, too.
 */
static void read_stray(struct recover *r, const char *key)
{
	const struct backend_config *config = &r->saved->b->config;
	cleanup_free char *dir = file_path(config->state_dir, key, NULL), *place = NULL;
	struct orphan *o = orphan_find(local_jobs_tasks(r->saved->jobs), dir);

	if (o) {
		diag(DIAG_WARNING,
		     "%s: a program is running, but its job has no record; the program keeps "
		     "its slot and its GPUs until it ends",
		     dir);
		r->orphans = mem_more(r->orphans, r->n_orphans, sizeof(struct orphan *));
		r->orphans[r->n_orphans++] = o;
	} else if (!config->passive) {
		(void)record_file_output_aside(config->state_dir, key, &place);
	}
}

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->head->key, ((const struct item *)b)->head->key);
}

static int read_folder(void *data, int at, const char *name, unsigned char type)
{
	struct recover *r = data;
	const struct spec_head head = {.key = (char *)(uintptr_t)name};
	const struct item key = {.head = &head};
	struct item *item = r->n ? bsearch(&key, r->items, r->n, sizeof(key), by_key) : NULL;

	if (item)
		item->has_output = true;
	else if (spec_name_is_file(name) && file_is_dir(at, name, type))
		read_stray(r, name);
	return 0;
}

/* Parse the record's parts in HEAD. Return 0, or -EINVAL if they are damaged. */
static int parse(const struct spec_head *head, struct item *ret)
{
	char *const *parts = head->more->parts;
	const char *plan = parts[RECORD_PLAN], *snapshot = parts[RECORD_SNAPSHOT];
	cleanup(spec_record_freep) struct spec_record *rec = NULL;
	struct spec_job *job;
	int err;

	/* Without a plan, the job was held, and held.c has not passed it on to this backend. */
	ret->kind = ITEM_NEVER;
	if (head->state == RECORD_SUBMITTING && !plan)
		return 0;
	err = spec_record_parse(snapshot, head->over ? NULL : plan, &rec);
	job = err ? NULL : rec->job;
	if (!job || !streq(job->uid, head->key) || !streq(job->id, head->id) ||
	    (!job->finished && (head->over || !plan)))
		return -EINVAL;
	job->history = head->state == RECORD_HISTORY;
	if (job->history)
		job->changed = max_of(job->changed, head->since);
	job->dropped |= head->dropped;
	ret->kind = job->finished ? ITEM_OVER : ITEM_RUNS;
	/* There may be many finished jobs, so keep only the smaller snapshots. */
	if (job->finished)
		ret->job = spec_record_job(rec);
	else
		ret->rec = take_ptr(rec);
	return 0;
}

/* True if the directory DIR has NAME, or the disk returns an error. */
static bool has(const char *dir, const char *name)
{
	cleanup_free char *path = text_print("%s/%s", dir, name);

	return disk_access(AT_FDCWD, path, F_OK) != -ENOENT;
}

static void read_finished(struct recover *r, struct item *item)
{
	struct spec_job *job = item->job;
	const char *key = item->head->key;
	cleanup_free char *dir = file_path(r->saved->b->config.state_dir, key, NULL);

	/* Without logs/, the output was dropped. A power cut may restore other parts of it. */
	job->dropped |= !item->has_output || !has(dir, "logs");
	item->left = item->has_output && job->dropped;
	item->unmerged = !job->dropped && output_is_unmerged(r->saved->b->output, key);
	if (item->has_output && !item->left)
		task_clean(dir);
}

/* True if a program of the SUBMITTING record ITEM may have been started. */
static bool was_started(const struct item *item)
{
	char boot[37];
	bool started;

	process_boot(boot);
	started = !*boot || !streq(item->head->more->boot, boot);
	for (size_t i = 0; i < item->rec->job->n_replicas; i++)
		started |= item->found[i].state != TASK_NONE;
	return started;
}

static void read_unfinished(struct recover *r, struct item *item)
{
	const struct backend_config *config = &r->saved->b->config;
	struct spec_record *rec = item->rec;
	int err = local_record_read_app(config->state_dir, config->home, rec);

	if (is_shortage(err))
		r->err = err;
	item->found = local_job_find_attempts(r->saved->jobs, rec);
	for (size_t i = 0; i < rec->job->n_replicas && !r->err; i++)
		if (item->found[i].state == TASK_UNKNOWN && is_shortage(item->found[i].err))
			r->err = item->found[i].err;
	if (item->head->state == RECORD_SUBMITTING && !was_started(item))
		item->kind = ITEM_NEVER;
}

static void recover_work(void *data)
{
	struct recover *r = data;
	cleanup_free char *path = text_print("%s/output", r->saved->b->config.state_dir);

	if (r->n)
		qsort(r->items, r->n, sizeof(*r->items), by_key);
	r->err = disk_list(AT_FDCWD, path, read_folder, r);
	for (size_t i = 0; i < r->n && !r->err; i++) {
		struct item *item = &r->items[i];

		if (item->kind == ITEM_OVER)
			read_finished(r, item);
		else if (item->kind == ITEM_RUNS)
			read_unfinished(r, item);
	}
}

static void resume(struct saved *saved, struct item *item)
{
	struct spec_record *rec = item->rec;
	struct task_found *found cleanup_free = NULL;
	struct local_job *job;

	job = local_job_new(saved->jobs, records_by_key(saved->b->records, item->head->key), rec);
	if (!job) {
		diag(DIAG_ERROR,
		     "%s: the job's logs can't be opened: %s; kxfs does not show "
		     "the job",
		     rec->job->id, strerror(errno));
		return;
	}
	item->rec = NULL;
	found = take_ptr(item->found);
	local_job_take_over(job, found);
}

/* Complete the merged log, which may lack lines, for example because the disk was full. */
static void merge_again(struct saved *saved, const struct spec_job *job)
{
	struct output_job *j = output_job_open(saved->b->output, spec_job_key(job));

	for (size_t i = 0; j && i < job->n_replicas; i++) {
		const struct spec_replica *rep = &job->replicas[i];
		cleanup_free char *prefix = spec_replica_log_prefix(rep);

		for (size_t a = 0; a < rep->n_logs; a++)
			if (output_log_begin(j, rep->logs[a].key, prefix, false) == 0)
				output_log_end(j, rep->logs[a].key, NULL, NULL);
	}
	if (j)
		output_job_end(j);
	output_job_close(j);
}

static void show(struct saved *saved, struct item *item)
{
	struct backend *b = saved->b;

	switch (item->kind) {
	case ITEM_OTHER:
		return;
	case ITEM_NEVER: /* held.c shows the job, and changes its record */
		if (!item->head->held && !b->config.passive)
			output_job_remove(b->output, item->head->key, NULL, NULL);
		return;
	case ITEM_RUNS:
		return resume(saved, item);
	case ITEM_OVER:
		break;
	}
	if (item->left)
		output_job_remove(b->output, item->head->key, NULL, NULL);
	if (item->unmerged)
		merge_again(saved, item->job);
	store_put(b->store, take_ptr(item->job));
}

static void recover_done(void *data)
{
	struct recover *r = data;
	struct saved *saved = r->saved;
	struct backend *b = saved->b;
	cleanup_free char *text = NULL;

	if (!saved->expiry) /* the mount is ending */
		r->err = -ECANCELED;
	for (size_t i = 0; i < r->n && !r->err; i++)
		show(saved, &r->items[i]);
	while (r->n_orphans && !r->err)
		local_jobs_add_orphan(saved->jobs, r->orphans[--r->n_orphans]);
	if (is_shortage(r->err))
		text_set(&text,
			 "kxfs can't reconnect to the running jobs: %s; kxfs needs one file "
			 "descriptor per process (raise ulimit -Hn). The jobs continue to run",
			 strerror(-r->err));
	else if (r->err < 0)
		text = text_print("%s/output can't be read: %s", b->config.state_dir,
				  strerror(-r->err));
	backend_started(b, r->err, text);
	if (r->err == 0)
		expiry_soon(saved->expiry);
	recover_free(take_ptr(saved->recover));
}

/*
 * Called on the pool for each record, before saved_recover. If the job is local and may have been
 * launched, parse the parts of its record, and free them.
 */
static int read_record(void *data, struct spec_head *h)
{
	struct saved *saved = data;
	struct recover *r = saved->recover;
	struct item item = {.head = h};
	int err = 0;

	if (streq(h->backend, "local") && h->state != RECORD_HELD && h->state != RECORD_NEVER) {
		err = parse(h, &item);
		free(take_ptr(h->more->parts[RECORD_PLAN]));
		free(take_ptr(h->more->parts[RECORD_SNAPSHOT]));
		spec_head_forget(h);
	}
	if (err)
		return err;
	r->items = mem_more(r->items, r->n, sizeof(*r->items));
	r->items[r->n++] = item;
	return 0;
}

void saved_recover(struct saved *saved)
{
	struct recover *r = saved->recover;

	r->work = (struct work){.run = recover_work,
				.done = recover_done,
				.group = saved->group,
				.data = r};
	work_start(&r->work, saved->b->loop);
}

/* --- start and stop --- */

struct saved *saved_new(struct backend *b, struct group *group, struct local_jobs *jobs)
{
	struct saved *saved = new0(struct saved);
	const struct expiry_config config = {
		.loop = b->loop,
		.store = b->store,
		.output = b->output,
		.archive = b->archive,
		.spool_limit = b->config.spool_limit,
		.history_keep = b->config.history_keep,
		.may_go = may_go,
		.has_output = has_output,
		.is_busy = is_busy,
		.retire = retire_job,
		.remove = remove_job,
		.drop = drop_output,
		.data = saved,
	};

	saved->b = b;
	saved->group = group;
	saved->jobs = jobs;
	saved->expiry = expiry_new(&config);
	saved->recover = new0(struct recover);
	saved->recover->saved = saved;
	records_set_reader(b->records, read_record, saved);
	return saved;
}

void saved_stop(struct saved *saved)
{
	expiry_free(take_ptr(saved->expiry));
}

void saved_free(struct saved *saved)
{
	saved_stop(saved);
	if (saved->recover)
		recover_free(saved->recover);
	free(saved);
}
