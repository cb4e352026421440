/* SPDX-License-Identifier: MIT */
/*
 * A queue of the changes of jobs that are only on disk; and the start, which reads all jobs on disk. It fails if the
 * disk does not give a record, since that may be the record of a job that runs. A damaged record is moved to
 * STATE/aside.
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
#include "backend/local/record_file.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

struct change {
	struct change *prev, *next;
	struct saved *saved;
	enum saved_change kind;
	struct backend_request *rq;
	char *uid;
	const struct spec_job *job; /* the job's snapshot when the change begins */
	struct spec_job *moved;	    /* the job's snapshot after it */
	struct work work;
};

struct saved {
	struct backend *b;
	struct group *group;
	struct local_jobs *jobs;
	struct expiry *expiry; /* NULL: the mount is ending */
	struct change *changes;
	bool busy; /* the first of the queue is under way */
};

struct saved *saved_new(struct backend *b, struct group *group, struct local_jobs *jobs,
			struct expiry *expiry)
{
	struct saved *saved = new0(struct saved);

	saved->b = b;
	saved->group = group;
	saved->jobs = jobs;
	saved->expiry = expiry;
	return saved;
}

void saved_free(struct saved *saved)
{
	free(saved);
}

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
	spec_job_unref(c->moved);
	free(c);
}

/* Runs on the pool: note on disk that the job is history. */
static void mark_work(void *data)
{
	struct change *c = data;

	c->moved = spec_job_copy(c->job);
	c->moved->history = true;
	c->moved->actions = 0;
	c->moved->changed = loop_time_ns();
	c->work.err =
		record_mark(c->saved->b->config.state_dir, spec_job_key(c->job), c->moved->changed);
}

/* Runs on the pool: note on disk that the job's output is gone. */
static void drop_work(void *data)
{
	struct change *c = data;
	const char *state_dir = c->saved->b->config.state_dir;
	cleanup(spec_record_freep) struct spec_record *rec = NULL;

	c->work.err = record_read(state_dir, spec_job_key(c->job), &rec);
	if (c->work.err < 0)
		return;
	rec->job->dropped = true;
	spec_job_unref(c->moved);
	c->moved = spec_record_job(rec);
	c->work.err = record_write(state_dir, rec);
}

/* Write the record again, now that there is room. If there is none, the next start sees that there are no logs. */
static void noted(void *data)
{
	return end_change(data, 0, NULL);
}

static void drop_done(void *data, int err)
{
	struct change *c = data;

	if (err < 0 || c->work.err == 0)
		return end_change(c, err, NULL);
	c->work.done = noted;
	work_start(&c->work, c->saved->b->loop);
}

/*
 * Readers learn that the output is gone before it is; the next start removes what a crash leaves of it. On a full disk
 * the record can only be written when the removed output has made room.
 */
static void write_done(void *data)
{
	struct change *c = data;
	bool drops = c->kind == SAVED_DROP;
	cleanup_free char *text = NULL;

	if (c->work.err == 0 || (drops && file_is_full(c->work.err)))
		store_put(c->saved->b->store, take_ptr(c->moved));
	if (drops && (c->work.err == 0 || file_is_full(c->work.err)))
		return output_logs_remove(c->saved->b->output, spec_job_key(c->job), drop_done, c);
	if (c->work.err < 0 && !drops)
		text = text_print("%s: its record can't be changed: %s", c->job->id,
				  strerror(-c->work.err));
	return end_change(c, c->work.err, text);
}

static void remove_done(void *data, int err)
{
	struct change *c = data;
	cleanup_free char *text = NULL;

	if (err < 0)
		text = text_print("%s: its directory can't be removed: %s", c->job->id,
				  strerror(-err));
	else
		store_remove(c->saved->b->store, c->job->uid);
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
	if (!c->job || (c->kind == SAVED_CANCEL && c->job->history))
		end_change(c, -ENOENT, NULL);
	else if (c->kind == SAVED_CANCEL || c->kind == SAVED_DROP)
		work_start(&c->work, saved->b->loop);
	else
		output_job_remove(saved->b->output, spec_job_key(c->job), remove_done, c);
}

void saved_change(struct saved *saved, enum saved_change kind, const char *uid,
		  struct backend_request *rq)
{
	struct change *c = new0(struct change);

	c->saved = saved;
	c->kind = kind;
	c->uid = text_copy(uid);
	c->rq = rq;
	c->work = (struct work){.run = kind == SAVED_CANCEL ? mark_work : drop_work,
				.done = write_done,
				.data = c};
	group_enter(saved->group);
	DL_APPEND(saved->changes, c);
	next_change(saved);
}

/* --- the start --- */

struct item {
	struct spec_job *job; /* of a job that is over: its snapshot; else NULL */
	char *file;	      /* the file in submit/ that it was launched from */
	bool left;	      /* its output was to be removed, and some of it is still there */
	bool unmerged;	      /* its merged log lacks something */
	/* Of a job that is not over: its record, which is taken from here when the job goes on; */
	struct spec_record *rec;
	struct task_found *found; /* and what became of its replicas, which is taken, too. */
};

struct recover {
	struct saved *saved;
	struct item *items;
	size_t n;
	int err;
	char *text; /* why the start fails; NULL: it does not, or for want of descriptors or memory */
	struct work work;
};

static void item_clear(struct item *item)
{
	spec_job_unref(item->job);
	free(item->file);
	for (size_t i = 0; item->found && i < item->rec->job->n_replicas; i++)
		if (item->found[i].fd >= 0)
			close(item->found[i].fd);
	free(item->found);
	spec_record_free(item->rec);
}

/*
 * Does ERR mean that something is lacking of which there may be more later? Then a start for whose answer nobody waits
 * may succeed then.
 */
static bool is_ours(int err)
{
	return err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS;
}

/* The record of the job KEY in DIR can't be used, for ERR: move the folder out of the way. */
static void put_aside(struct recover *r, const char *dir, const char *key, int err)
{
	const struct backend_config *config = &r->saved->b->config;
	cleanup_free char *place = NULL;
	int moved = -EROFS;

	/* A folder without a record is left: nothing is known of it. */
	if (!config->passive && err != -ENOENT)
		moved = file_aside_state(dir, config->state_dir, key, &place);
	diag(DIAG_WARNING, "%s/job.json %s; the job is not shown, and its folder is %s", dir,
	     file_fault(err), moved ? "left there" : place);
}

static void read_one(struct recover *r, const char *key)
{
	const char *state_dir = r->saved->b->config.state_dir;
	cleanup_free char *dir = file_path(state_dir, key, NULL);
	struct spec_record *rec = NULL;
	struct item *item;
	int err = record_read(state_dir, key, &rec);

	/*
	 * A crash after the folder was made and before its record was leaves the folder of a job that never began,
	 * since nothing is started before the record is there. Its file in submit/ has its verdict.
	 */
	if (err == -ENOENT && record_remove_begun(dir) == 0)
		return;
	if (is_ours(err)) {
		r->err = err;
		return;
	}
	if (err < 0 && file_fault_may_pass(err)) {
		r->err = err;
		r->text = text_print(
			"%s/job.json can't be read: %s; to start without that job, mv %s "
			"elsewhere",
			dir, strerror(-err), dir);
		return;
	}
	if (err < 0)
		return put_aside(r, dir, key, err);
	r->items = mem_more(r->items, r->n, sizeof(*r->items));
	item = &r->items[r->n++];
	*item = (struct item){0};
	if (rec->job->finished) {
		cleanup_free char *logs = text_print("%s/logs", dir);
		/* Logs that can't be looked at now are not gone. */
		bool has_logs = disk_access(AT_FDCWD, logs, F_OK) != -ENOENT;

		item->left = rec->job->dropped && has_logs;
		rec->job->dropped |= !has_logs;
		item->job = spec_record_job(rec);
		item->file = text_copy(rec->file);
		item->unmerged = !rec->job->dropped && output_is_unmerged(r->saved->b->output, key);
		spec_record_free(rec);
		task_clean(dir);
	} else {
		item->rec = rec;
		err = record_read_app(state_dir, r->saved->b->config.home, rec);
		if (is_ours(err))
			r->err = err;
		item->found = local_job_find_attempts(r->saved->jobs, rec);
		for (size_t i = 0; i < rec->job->n_replicas && !r->err; i++)
			if (item->found[i].state == TASK_UNKNOWN && is_ours(item->found[i].err))
				r->err = item->found[i].err;
	}
}

/*
 * If kxfs was killed after a record was made and before the first start, that job was not launched: a failed close told
 * the user so, nothing is started, and the file in submit/ has its verdict. But if the machine was down meanwhile, the
 * user may have been told that it was launched, so it is launched now.
 */
static bool was_never_launched(const struct item *item)
{
	char boot[37];
	bool begun;

	process_boot(boot);
	begun = !*boot || !streq(item->rec->boot, boot);
	for (size_t i = 0; i < item->rec->job->n_replicas; i++)
		begun |= item->found[i].state != TASK_NONE;
	return !begun;
}

static int read_named(void *data, int at, const char *name, unsigned char type)
{
	struct recover *r = data;

	/* A file is the record of a held job. */
	if (spec_name_is_file(name) && file_is_dir(at, name, type))
		read_one(r, name);
	return r->err;
}

static void recover_work(void *data)
{
	struct recover *r = data;
	cleanup_free char *path = text_print("%s/output", r->saved->b->config.state_dir);
	int err = disk_list(AT_FDCWD, path, read_named, r);

	if (!r->err)
		r->err = err;
}

/* Go on with a job that is not over. */
static void go_on(struct saved *saved, struct item *item)
{
	struct spec_record *rec = item->rec;
	struct task_found *found cleanup_free = NULL;
	struct local_job *job;

	if (was_never_launched(item))
		return output_job_remove(saved->b->output, spec_job_key(rec->job), NULL, NULL);
	backend_launched(saved->b, rec->file, rec->job->id, rec->job->submission);
	job = local_job_new(saved->jobs, rec);
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

static void recover_done(void *data)
{
	struct recover *r = data;
	struct saved *saved = r->saved;
	struct backend *b = saved->b;
	cleanup_free char *text = take_ptr(r->text);

	if (!saved->expiry)
		/* The thread that started the backend does not wait any more. */
		r->err = -ECANCELED;
	for (size_t i = 0; i < r->n; i++) {
		struct item *item = &r->items[i];

		if (r->err < 0) {
			item_clear(item);
			continue;
		}
		if (item->left)
			output_logs_remove(b->output, spec_job_key(item->job), NULL, NULL);
		if (item->unmerged)
			merge_again(saved, item->job);
		if (item->rec) {
			go_on(saved, item);
		} else {
			/*
			 * As with any other job, the user may not have been told of the launch, or a crash of the
			 * machine may have lost that.
			 */
			backend_launched(b, item->file, item->job->id, item->job->submission);
			store_put(b->store, take_ptr(item->job));
		}
		item_clear(item);
	}
	free(r->items);
	if (is_ours(r->err))
		text_set(
			&text,
			"the processes of jobs that run can't be reached: %s; kxfs needs a descriptor "
			"for each (ulimit -Hn). They run on",
			strerror(-r->err));
	else if (r->err < 0 && !text)
		text = text_print("%s/output can't be read: %s", b->config.state_dir,
				  strerror(-r->err));
	backend_started(b, r->err, text);
	if (r->err == 0)
		expiry_soon(saved->expiry);
	free(r);
}

void saved_recover(struct saved *saved)
{
	struct recover *r = new0(struct recover);

	r->saved = saved;
	r->work = (struct work){.run = recover_work,
				.done = recover_done,
				.group = saved->group,
				.data = r};
	work_start(&r->work, saved->b->loop);
}
