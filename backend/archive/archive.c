/* SPDX-License-Identifier: MIT */
/*
 * Each finished job has an entry. The entry waits in the queue until kxfs has copied the job to DIR
 * (archive.h). Afterwards the entry remains, to mark that DIR has the job. After a restart kxfs
 * queues each finished job again. If DIR already has the job, the copy ends early.
 *
 * A copy (copy.c) has two parts, which run on the pool. Between them the I/O thread checks that the
 * job has not changed while its output was read. After an error the job moves to the end of the
 * queue, and kxfs pauses before the next copy.
 */
#include "backend/archive/archive.h"

#include <errno.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/archive/copy.h"
#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "backend/base/print.h"
#include "backend/base/random.h"
#include "backend/base/thread.h"
#include "backend/base/work.h"
#include "backend/output/output.h"

#define SOON_MS	  1000 /* pause between the end of a job and its copy */
#define PAUSE_MS  1000 /* first pause after an error; each further error doubles it */
#define PAUSE_MAX 60000
#define CHECK_S	  10 /* how long kxfs waits for a response of DIR, at the start or during a copy */

struct archive_entry {
	char *uid;
	const struct spec_job *job; /* NULL if DIR has the job; the entry is then not queued */
	uint64_t at;		    /* loop_now_ms() when the copy is due */
	bool failed;
	struct archive_entry *prev, *next;
	UT_hash_handle hh;
};

struct archive {
	struct archive_config config;
	struct archive_entry *all, *queue;
	struct copy copy; /* COPY.JOB is a reference, or NULL if no copy is in progress */
	struct work work;
	unsigned failing; /* entries whose FAILED is true */
	bool away;	  /* true if the last copy failed because of DIR, not because of the job */
	struct backoff pause;
	uint64_t retry_at; /* loop_now_ms() when the next copy may start */
	struct loop_timer timer, late;
	bool ended;
	loop_fn stopped; /* callback of archive_stop; NULL if archive_stop was not called */
	void *stopped_data;
	struct lock lock; /* protects TROUBLE */
	char *trouble;
	atomic_ullong waiting, copied, failures;
};

static void step(void *data);

static struct archive_entry *find(const struct archive *a, const char *uid)
{
	struct archive_entry *e;

	HASH_FIND_STR(a->all, uid, e);
	return e;
}

/* --- reports --- */

/* Show TEXT as the error in .kxfs/info, or no error if TEXT is NULL. Take ownership of TEXT. */
static void set_trouble(struct archive *a, char *text)
{
	char *old;

	{
		lock_scope(&a->lock);
		old = a->trouble;
		a->trouble = text;
	}
	if (text && !old)
		diag(DIAG_WARNING,
		     "archive: %s; kxfs keeps the jobs in the state directory and retries", text);
	else if (!text && old)
		diag(DIAG_INFO, "archive: archiving works again");
	free(old);
}

/* True if a copy is in progress and DIR has not responded to it for CHECK_S seconds. */
static bool hangs(const struct archive *a)
{
	uint64_t answered = atomic_load(&a->copy.answered);

	return answered && loop_now_ms() - answered > CHECK_S * 1000;
}

static char *get_trouble(struct archive *a)
{
	if (hangs(a))
		return text_print("%s: does not respond; check its disk or file server",
				  a->config.dir);
	lock_scope(&a->lock);

	return a->trouble ? text_copy(a->trouble) : NULL;
}

void archive_info(struct archive *a, FILE *out)
{
	cleanup_free char *trouble = get_trouble(a);

	print_text(out, "archive", a->config.dir);
	fprintf(out, "archive_waiting: %llu\n", atomic_load(&a->waiting));
	print_text(out, "archive_error", trouble ? trouble : "");
}

void archive_metrics(struct archive *a, FILE *out)
{
	cleanup_free char *trouble = get_trouble(a);
	const struct print_metric metrics[] = {
		{"archive_waiting_jobs", "gauge", "Jobs that have ended and are not archived yet",
		 atomic_load(&a->waiting)},
		{"archive_failing", "gauge", "1 if kxfs can't archive a job, else 0",
		 trouble != NULL},
		{"archived_jobs_total", "counter", "Jobs that were archived",
		 atomic_load(&a->copied)},
		{"archive_failures_total", "counter", "Failures to archive a job",
		 atomic_load(&a->failures)},
	};

	print_metrics(out, metrics, array_size(metrics));
}

bool archive_lacks(const struct archive *a, const char *uid)
{
	const struct archive_entry *e = a ? find(a, uid) : NULL;

	return e && e->job;
}

bool archive_gives_up(const struct archive *a, const char *uid)
{
	return (a->away || hangs(a)) && !(a->copy.job && streq(a->copy.job->uid, uid));
}

/* --- the queue --- */

static void leave(struct archive *a, struct archive_entry *e)
{
	if (!e->job)
		return;
	DL_DELETE(a->queue, e);
	spec_job_unref(take_ptr(e->job));
	a->failing -= e->failed;
	e->failed = false;
	atomic_fetch_sub(&a->waiting, 1);
	/* If no job waits, or DIR is available and no waiting job has failed, clear the error. */
	if (!a->queue || (!a->failing && !a->away))
		set_trouble(a, NULL);
}

static void forget(struct archive *a, struct archive_entry *e)
{
	leave(a, e);
	HASH_DEL(a->all, e);
	free(e->uid);
	free(e);
}

void archive_job(struct archive *a, const struct spec_job *old, const struct spec_job *new_job)
{
	struct archive_entry *e = find(a, old ? old->uid : new_job->uid);
	bool ended = new_job && spec_state_is_final(new_job->state) &&
		     (new_job->history || !new_job->suspended);

	/*
	 * Remove the entry of a deleted job, or of a job that runs again before it was copied. A
	 * job that runs again after its copy keeps its entry, because kxfs never changes a copy.
	 */
	if (e && !ended && (e->job || !new_job))
		return forget(a, e);
	if (!ended || (e && !e->job))
		return;
	if (!e) {
		e = new0(struct archive_entry);
		e->uid = text_copy(new_job->uid);
		e->at = loop_now_ms() + SOON_MS;
		HASH_ADD_KEYPTR(hh, a->all, e->uid, strlen(e->uid), e);
		DL_APPEND(a->queue, e);
		atomic_fetch_add(&a->waiting, 1);
		if (!loop_timer_is_set(&a->timer) && !a->ended)
			loop_timer_set(&a->timer, SOON_MS);
	}
	spec_job_unref(e->job);
	e->job = spec_job_ref(new_job);
}

static bool is_settled(const struct archive *a, const struct spec_job *job)
{
	return (job->history ||
		(spec_job_is_over(job) && !job->unexplained && !job->stale_since)) &&
	       a->config.is_settled(a->config.data, job) &&
	       (job->dropped || output_is_merged(a->config.output, spec_job_key(job)));
}

/* --- a copy --- */

/* Record that the copy of E's job has failed. E is NULL if the job was deleted during the copy. */
static void failed(struct archive *a, struct archive_entry *e, int err)
{
	atomic_fetch_add(&a->failures, 1);
	a->retry_at = loop_now_ms() + backoff_next(&a->pause, 0);
	if (!e || !e->job)
		return;
	a->failing += !e->failed;
	e->failed = true;
	set_trouble(a, text_copy(a->copy.why ? a->copy.why : strerror(-err)));
}

static void finished(void *data)
{
	struct archive *a = data;
	struct copy *c = &a->copy;
	struct archive_entry *e = find(a, c->job->uid);

	a->away = c->away;
	atomic_fetch_add(&a->copied, c->found == COPY_RENAMED);
	if (c->found && e)
		leave(a, e);
	if (e && e->job) {
		DL_DELETE(a->queue, e);
		DL_APPEND(a->queue, e);
		e->at = loop_now_ms() + SOON_MS;
	}
	if (a->work.err && a->work.err != -ECANCELED)
		failed(a, e, a->work.err);
	else
		backoff_reset(&a->pause);
	spec_job_unref(take_ptr(c->job));
	free(take_ptr(c->why));
	step(a);
}

static void finish_work(void *data)
{
	struct archive *a = data;
	int before = a->work.err, err;

	atomic_store(&a->copy.answered, loop_now_ms());
	err = copy_finish(&a->copy, before);
	atomic_store(&a->copy.answered, 0);
	a->work.err = before ? before : err;
}

static void made(void *data)
{
	struct archive *a = data;
	const struct archive_entry *e = find(a, a->copy.job->uid);

	/*
	 * Cancel the copy if the job has changed since copy_make began: it was deleted, runs again,
	 * got another id, or kxfs removes its output.
	 */
	if (!a->work.err &&
	    !(e && e->job && streq(e->job->id, a->copy.job->id) && is_settled(a, e->job)))
		a->work.err = -ECANCELED;
	a->work.run = *a->copy.temp ? finish_work : NULL;
	a->work.done = finished;
	work_start(&a->work, a->config.loop);
}

static void make_work(void *data)
{
	struct archive *a = data;

	atomic_store(&a->copy.answered, loop_now_ms());
	a->work.err = copy_make(&a->copy);
	atomic_store(&a->copy.answered, 0);
}

static void begin(struct archive *a, const struct archive_entry *e)
{
	struct copy *c = &a->copy;

	c->job = spec_job_ref(e->job);
	c->temp[0] = '\0';
	c->found = COPY_ABSENT;
	c->away = false;
	a->work = (struct work){.run = make_work, .done = made, .data = a};
	work_start(&a->work, a->config.loop);
}

static void on_stopped(void *data)
{
	struct archive *a = data;

	a->ended = true;
	atomic_store(&a->copy.cancel, true);
	loop_timer_stop(&a->timer);
	loop_timer_stop(&a->late);
	if (a->waiting)
		diag(DIAG_INFO,
		     "%llu jobs are not archived yet; the next start of kxfs "
		     "archives them",
		     atomic_load(&a->waiting));
	if (a->stopped)
		take_ptr(a->stopped)(a->stopped_data);
}

/*
 * Copy the first job that is due and whose output is on disk (archive_config.is_settled). If there
 * is no such job, set the timer for the next job in the queue.
 */
static void step(void *data)
{
	struct archive *a = data;
	uint64_t now = loop_now_ms(), next = UINT64_MAX;
	struct archive_entry *e;

	if (!a->copy.namespace || a->copy.job || a->ended)
		return;
	if (a->stopped && a->away)
		return on_stopped(a);
	if (now < a->retry_at && !a->stopped)
		return loop_timer_set(&a->timer, a->retry_at - now);
	DL_FOREACH(a->queue, e) {
		bool due = a->stopped ? !e->failed : e->at <= now;

		if (due && is_settled(a, e->job))
			return begin(a, e);
		e->at = due ? now + SOON_MS : e->at;
		next = min_of(next, e->at);
	}
	if (a->stopped)
		on_stopped(a);
	else if (next != UINT64_MAX)
		loop_timer_set(&a->timer, next - now);
}

/* A check of DIR, in a thread of its own, because DIR may hang. */
struct check {
	char *dir, *state_dir;
	struct wait over;
};

static void *check_thread(void *data)
{
	struct check *q = data;

	cleanup_free char *why = NULL;
	cleanup_fd int fd = copy_open(q->dir, q->state_dir, &why);

	wait_set(&q->over, min_of(fd, 0), why);
	return NULL;
}

int archive_check(const char *dir, const char *state_dir, char **ret_text)
{
	struct check *q = new0(struct check);
	int err;

	q->dir = text_copy(dir);
	q->state_dir = state_dir ? text_copy(state_dir) : NULL;
	wait_init(&q->over);
	*ret_text = NULL;
	err = thread_start(check_thread, q, NULL);
	if (err < 0)
		text_set(ret_text, "can't start a thread: %s", strerror(-err));
	else
		err = wait_get(&q->over, CHECK_S, ret_text);
	if (err == -ETIMEDOUT) { /* the hanging thread still uses Q */
		text_set(ret_text, "%s: does not respond; check its disk or file server", dir);
		return err;
	}
	wait_clear(&q->over);
	free(q->dir);
	free(q->state_dir);
	free(q);
	return err;
}

void archive_begin(struct archive *a, const char *namespace)
{
	a->copy.namespace = text_copy(namespace);
	step(a);
}

void archive_stop(struct archive *a, loop_fn fn, void *data)
{
	a->stopped = fn;
	a->stopped_data = data;
	loop_timer_set(&a->late, a->config.stop_ms);
	if (a->copy.namespace)
		step(a);
	else
		on_stopped(a);
}

struct archive *archive_new(const struct archive_config *config)
{
	struct archive *a = new0(struct archive);

	a->pause = backoff_begin(PAUSE_MS, PAUSE_MAX);
	a->config = *config;
	a->copy.config = &a->config;
	a->lock = (struct lock)LOCK_INIT;
	loop_timer_init(&a->timer, config->loop, step, a);
	loop_timer_init(&a->late, config->loop, on_stopped, a);
	return a;
}

void archive_free(struct archive *a)
{
	struct archive_entry *e, *next;

	if (!a)
		return;
	free(take_ptr(a->trouble));
	HASH_ITER(hh, a->all, e, next)
		forget(a, e);
	free(a->copy.namespace);
	free(a);
}
