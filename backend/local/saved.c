/* SPDX-License-Identifier: MIT */
/*
 * A queue of the changes of finished jobs, whose records nobody else changes; and the start, which goes on with the
 * jobs of the records that are not finished.
 *
 * At a start a record may be SUBMITTING. If a helper has left a file, or the machine was restarted since the record was
 * written, the job was launched: after a power cut its file may be gone, and the user may have had the answer.
 * Otherwise nothing was started, since a helper makes its file before it starts the program.
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
#include "backend/local/orphan.h"
#include "backend/local/record.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

struct change {
	struct change *prev, *next;
	struct saved *saved;
	enum saved_change kind;
	struct backend_request *rq;
	char *uid;
	const struct spec_job *job; /* the job's snapshot when the change begins */
	struct record *entry;	    /* the job's record */
	bool is_full;		    /* the disk has no space for the change */
};

struct recover;

struct saved {
	struct backend *b;
	struct recover *recover; /* until the start is over */
	struct group *group;
	struct local_jobs *jobs;
	struct expiry *expiry; /* NULL: the mount is ending */
	struct change *changes;
	bool busy; /* the first of the queue is under way */
};

void saved_stop(struct saved *saved)
{
	saved->expiry = NULL;
}

bool saved_is_busy(const struct saved *saved)
{
	return saved->changes;
}

/* --- changes --- */

static void next_change(struct saved *saved);

/*
 * The change is over. ERR: 0, or why it was not made. TEXT: a sentence about that, for whoever asked, or else for a
 * message.
 */
static void end_change(struct change *c, int err, const char *text)
{
	struct saved *saved = c->saved;

	if (c->rq)
		backend_answer(c->rq, err, c->rq->id, text);
	else if (text)
		diag(DIAG_ERROR, "%s", text);
	DL_DELETE(saved->changes, c);
	saved->busy = false;
	group_leave(saved->group);
	next_change(saved);
	if (c->kind == SAVED_DROP && c->job)
		expiry_dropped(saved->expiry, c->job->id, err);
	else if (c->kind == SAVED_EXPIRE && err == 0)
		expiry_now(saved->expiry);
	else if (c->kind != SAVED_EXPIRE)
		expiry_soon(saved->expiry);
	free(c->uid);
	spec_job_unref(c->job);
	free(c);
}

/* The job of C after the change. */
static struct spec_job *changed_job(const struct change *c)
{
	struct spec_job *job = spec_job_copy(c->job);

	if (c->kind == SAVED_DROP) {
		job->dropped = true;
	} else {
		job->history = true;
		job->actions = 0;
		job->changed = record_head(c->entry)->since;
	}
	return job;
}

static void on_marked(void *data, int err)
{
	struct change *c = data;
	cleanup_free char *text = NULL;

	if (err)
		text = text_print("%s: its record can't be changed: %s", c->job->id,
				  strerror(-err));
	else
		store_put(c->saved->b->store, changed_job(c));
	return end_change(c, err, text);
}

static void on_noted(void *data, int err)
{
	return end_change(data, 0, NULL);
}

static void commit_drop(struct change *c, records_fn done)
{
	records_commit(c->entry,
		       &(struct record_change){.state = record_head(c->entry)->state,
					       .dropped = true},
		       done, c);
}

/* Now there is space for the record. If there is none, the next start finds no logs. */
static void on_dropped(void *data, int err)
{
	struct change *c = data;

	if (err || !c->is_full)
		return end_change(c, err, NULL);
	commit_drop(c, on_noted);
}

/*
 * Readers learn that the output is removed before it is; the next start removes what a crash leaves of it. On a full
 * disk the record can only be written when the removed output has made space.
 */
static void on_drop_noted(void *data, int err)
{
	struct change *c = data;

	c->is_full = file_is_full(err);
	if (err && !c->is_full)
		return end_change(c, err, NULL);
	store_put(c->saved->b->store, changed_job(c));
	output_job_remove(c->saved->b->output, spec_job_key(c->job), on_dropped, c);
}

static void on_removed(void *data, int err)
{
	struct change *c = data;
	cleanup_free char *text = NULL;

	if (err)
		text = text_print("%s: its record can't be removed: %s", c->job->id,
				  strerror(-err));
	else
		store_remove(c->saved->b->store, c->job->uid);
	return end_change(c, err, text);
}

/* The record is removed last: until then the job is there to be removed. */
static void on_output_removed(void *data, int err)
{
	struct change *c = data;
	cleanup_free char *text = NULL;

	if (!err)
		return records_remove(c->entry, false, on_removed, c);
	text = text_print("%s: its directory can't be removed: %s", c->job->id, strerror(-err));
	return end_change(c, err, text);
}

static void next_change(struct saved *saved)
{
	struct change *c = saved->changes;

	if (!c || saved->busy)
		return;
	saved->busy = true;
	/* An earlier change in the queue may have moved or removed the job. */
	c->job = store_get_uid(saved->b->store, c->uid);
	c->entry = c->job ? records_by_key(saved->b->records, spec_job_key(c->job)) : NULL;
	if (!c->entry || (c->kind == SAVED_CANCEL && c->job->history))
		end_change(c, -ENOENT, NULL);
	else if (c->kind == SAVED_CANCEL)
		records_mark(c->entry, on_marked, c);
	else if (c->kind == SAVED_DROP)
		commit_drop(c, on_drop_noted);
	else
		output_job_remove(saved->b->output, spec_job_key(c->job), on_output_removed, c);
}

void saved_change(struct saved *saved, enum saved_change kind, const char *uid,
		  struct backend_request *rq)
{
	struct change *c = new0(struct change);

	c->saved = saved;
	c->kind = kind;
	c->uid = text_copy(uid);
	c->rq = rq;
	group_enter(saved->group);
	DL_APPEND(saved->changes, c);
	next_change(saved);
}

/* --- the start --- */

/* A record at the start. */
struct item {
	enum {
		ITEM_OTHER,   /* not of a local job, or held */
		ITEM_DAMAGED, /* of a local job, but not its parts */
		ITEM_NEVER,   /* nothing was started, and never will be */
		ITEM_OVER,
		ITEM_RUNS
	} kind;
	struct record *entry; /* NULL: it is not looked up yet */
	const struct spec_head *head;
	bool has_output; /* it has a folder */
	/* OVER: */
	struct spec_job *job; /* its snapshot */
	bool left;	      /* its output was to be removed, and some of it is still there */
	bool unmerged;	      /* its merged log lacks something */
	/* RUNS: its record, which is taken from here when the job goes on; */
	struct spec_record *rec;
	struct task_found *found; /* and what became of its replicas, which is taken, too. */
};

struct recover {
	struct saved *saved;
	struct item
		*items; /* all records, by key; of others than local jobs only the key is used */
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

/*
 * Does ERR mean that something is lacking of which there may be more later? Then a start for whose answer nobody waits
 * may succeed then.
 */
static bool is_ours(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS;
}

/* A folder without a usable record: an orphan, or the output of a record in STATE/aside, beside which it belongs. */
static void read_stray(struct recover *r, const char *key)
{
	const struct backend_config *config = &r->saved->b->config;
	cleanup_free char *dir = file_path(config->state_dir, key, NULL), *place = NULL;
	struct orphan *o = orphan_find(local_jobs_tasks(r->saved->jobs), config->state_dir, key);

	if (o) {
		diag(DIAG_WARNING,
		     "%s: a program runs whose job has no record; its place and its GPUs stay taken until it ends",
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
	if ((!item || item->kind == ITEM_DAMAGED) && spec_name_is_file(name) &&
	    file_is_dir(at, name, type))
		read_stray(r, name);
	return 0;
}

static bool is_job(const struct item *item)
{
	const enum record_state state = item->head->state;

	return streq(item->head->backend, "local") && state != RECORD_HELD && state != RECORD_NEVER;
}

/* Parse the parts of ITEM. What the head has counts. */
static void parse(struct item *item, const char *plan, const char *snapshot)
{
	const struct spec_head *head = item->head;
	struct spec_job *job;
	int err;

	/* Recorded when it was held, and not passed on to this backend yet. */
	item->kind = ITEM_NEVER;
	if (head->state == RECORD_SUBMITTING && !plan)
		return;
	item->kind = ITEM_DAMAGED;
	err = spec_record_parse(snapshot, head->over ? NULL : plan, &item->rec);
	job = err ? NULL : item->rec->job;
	if (!job || !streq(job->uid, head->key) || !streq(job->id, head->id) ||
	    (!job->finished && (head->over || !plan)))
		return;
	item->kind = job->finished ? ITEM_OVER : ITEM_RUNS;
	spec_set(&item->rec->file, head->file);
	job->history = head->state == RECORD_HISTORY;
	if (job->history)
		job->changed = max_of(job->changed, head->since);
	job->dropped |= head->dropped;
	if (item->kind != ITEM_OVER)
		return;
	/* There may be many of these. */
	item->job = spec_record_job(item->rec);
	spec_record_free(take_ptr(item->rec));
}

/* Does DIR have NAME? What can't be looked at now is not gone. */
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

	/* After a power cut a part of a removed folder may be there again. */
	job->dropped |= !item->has_output || !has(dir, "logs");
	item->left = item->has_output && job->dropped;
	item->unmerged = !job->dropped && output_is_unmerged(r->saved->b->output, key);
	if (item->has_output)
		task_clean(dir);
}

/* Was a program of ITEM, which is SUBMITTING, started for all that is known? */
static bool was_started(const struct item *item)
{
	char boot[37];
	bool started;

	process_boot(boot);
	started = !*boot || !streq(item->head->boot, boot);
	for (size_t i = 0; i < item->rec->job->n_replicas; i++)
		started |= item->found[i].state != TASK_NONE;
	return started;
}

static void read_unfinished(struct recover *r, struct item *item)
{
	const struct backend_config *config = &r->saved->b->config;
	struct spec_record *rec = item->rec;
	int err = local_record_read_app(config->state_dir, config->home, rec);

	if (is_ours(err))
		r->err = err;
	item->found = local_job_find_attempts(r->saved->jobs, rec);
	for (size_t i = 0; i < rec->job->n_replicas && !r->err; i++)
		if (item->found[i].state == TASK_UNKNOWN && is_ours(item->found[i].err))
			r->err = item->found[i].err;
	if (item->head->state == RECORD_SUBMITTING && !was_started(item))
		item->kind = ITEM_NEVER;
}

static void recover_work(void *data)
{
	struct recover *r = data;
	const struct backend_config *config = &r->saved->b->config;
	cleanup_free char *path = text_print("%s/output", config->state_dir);

	if (r->n)
		qsort(r->items, r->n, sizeof(*r->items), by_key);
	for (size_t i = 0; i < r->n; i++) {
		if (r->items[i].kind == ITEM_DAMAGED)
			record_file_put_aside(config->state_dir, r->items[i].head->key,
					      config->passive, -EINVAL);
	}
	r->err = disk_list(AT_FDCWD, path, read_folder, r);
	for (size_t i = 0; i < r->n && !r->err; i++) {
		struct item *item = &r->items[i];

		if (item->kind == ITEM_OVER)
			read_finished(r, item);
		else if (item->kind == ITEM_RUNS)
			read_unfinished(r, item);
	}
}

/* Go on with a job that is not over. */
static void go_on(struct saved *saved, struct item *item)
{
	struct spec_record *rec = item->rec;
	struct task_found *found cleanup_free = NULL;
	struct local_job *job;

	backend_launched(saved->b, rec->file, rec->job->id, rec->job->submission);
	job = local_job_new(saved->jobs, item->entry, rec);
	if (!job) {
		diag(DIAG_ERROR, "%s: its logs can't be opened: %s; it is not shown", rec->job->id,
		     strerror(errno));
		return;
	}
	item->rec = NULL;
	found = take_ptr(item->found);
	local_job_take_over(job, found);
}

/* Put into the merged log of JOB, which is over, what kxfs could not put there before it ended, as on a full disk. */
static void merge_again(struct saved *saved, const struct spec_job *job)
{
	struct output_job *j = output_job_open(saved->b->output, spec_job_key(job));

	for (size_t i = 0; j && i < job->n_replicas; i++) {
		const struct spec_replica *rep = &job->replicas[i];
		cleanup_free char *prefix = spec_record_log_prefix(rep);

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
	case ITEM_DAMAGED:
		if (!b->config.passive)
			records_remove(item->entry, false, NULL, NULL);
		return;
	case ITEM_NEVER: /* held.h shows it, and changes its record */
		if (!item->head->held && !b->config.passive)
			output_job_remove(b->output, item->head->key, NULL, NULL);
		return;
	case ITEM_RUNS:
		return go_on(saved, item);
	case ITEM_OVER:
		break;
	}
	if (item->left)
		output_job_remove(b->output, item->head->key, NULL, NULL);
	if (item->unmerged)
		merge_again(saved, item->job);
	/*
	 * As with any other job, the user may not have been told of the launch, or a crash of the machine may have
	 * lost that.
	 */
	backend_launched(b, item->head->file, item->job->id, item->job->submission);
	store_put(b->store, take_ptr(item->job));
}

static void recover_done(void *data)
{
	struct recover *r = data;
	struct saved *saved = r->saved;
	struct backend *b = saved->b;
	cleanup_free char *text = NULL;

	if (!saved->expiry)
		/* The thread that started the backend does not wait any more. */
		r->err = -ECANCELED;
	for (size_t i = 0; i < r->n && !r->err; i++)
		show(saved, &r->items[i]);
	while (r->n_orphans && !r->err)
		local_jobs_add_orphan(saved->jobs, r->orphans[--r->n_orphans]);
	if (is_ours(r->err))
		text_set(
			&text,
			"the processes of jobs that run can't be reached: %s; kxfs needs a descriptor "
			"for each (ulimit -Hn). They run on",
			strerror(-r->err));
	else if (r->err < 0)
		text = text_print("%s/output can't be read: %s", b->config.state_dir,
				  strerror(-r->err));
	backend_started(b, r->err, text);
	if (r->err == 0)
		expiry_soon(saved->expiry);
	recover_free(take_ptr(saved->recover));
}

/* Runs on the pool, before saved_recover. */
static void read_record(void *data, struct spec_head *h)
{
	struct saved *saved = data;
	struct recover *r = saved->recover;
	struct item *item;

	r->items = mem_more(r->items, r->n, sizeof(*r->items));
	item = &r->items[r->n++];
	*item = (struct item){.head = h};
	if (!is_job(item))
		return;
	parse(item, h->parts[RECORD_PLAN], h->parts[RECORD_SNAPSHOT]);
	free(take_ptr(h->parts[RECORD_PLAN]));
	free(take_ptr(h->parts[RECORD_SNAPSHOT]));
}

void saved_recover(struct saved *saved)
{
	struct recover *r = saved->recover;

	for (size_t i = 0; i < r->n; i++)
		r->items[i].entry = records_by_key(saved->b->records, r->items[i].head->key);
	r->work = (struct work){.run = recover_work,
				.done = recover_done,
				.group = saved->group,
				.data = r};
	work_start(&r->work, saved->b->loop);
}

/* --- life --- */

struct saved *saved_new(struct backend *b, struct group *group, struct local_jobs *jobs,
			struct expiry *expiry)
{
	struct saved *saved = new0(struct saved);

	saved->b = b;
	saved->group = group;
	saved->jobs = jobs;
	saved->expiry = expiry;
	saved->recover = new0(struct recover);
	saved->recover->saved = saved;
	records_set_reader(b->records, read_record, saved);
	return saved;
}

void saved_free(struct saved *saved)
{
	if (saved->recover)
		recover_free(saved->recover);
	free(saved);
}
