/* SPDX-License-Identifier: MIT */
/*
 * Held jobs. An entry is one of them: its record (spec/record/held.h), as it stands in STATE/held/UUID, and what is
 * being done about it. UUID is that of its submission, which is its uid until it is launched. A making is a submission
 * that becomes an entry: its document is looked at, the implementation makes a dry run of it, and it is written.
 *
 *	making  | what is under way                | what ends it           | next
 *	LOOK    | the pool reads its conditions    | it has none            | the request is passed on
 *	        |                                  | one can't be           | answer: refused
 *	        |                                  | it has some            | DRY
 *	DRY     | the implementation's dry run     | refused                | answer: refused
 *	        |                                  | approved               | WRITE
 *	WRITE   | the pool writes the record       | it is on disk          | an entry; answer: held
 *	        |                                  | it can't be            | answer: refused
 *
 *	entry    | what is under way                     | what ends it           | next
 *	RESTS    | nothing, or the record is written; as | all conditions hold    | LAUNCHES
 *	         | the record says, the job waits, was   | somebody removes it,   | GOES
 *	         | launched, or is over                  | or it was launched     |
 *	LAUNCHES | its document is read, and submitted   | launched, or refused   | RESTS
 *	GOES     | the record is being removed           | it is                  | (freed)
 *	         |                                       | it can't be            | RESTS
 *	         |                                       | that can't be synced   | RESTS; GOES once more
 *
 * A launch happens exactly once: it has the UUID and the name that were chosen when the job was held, so the
 * implementation knows whether an earlier one, before a crash, has made the job, from what it had on disk before it
 * sent or started anything. The record is there until the job is known to be launched; as long as it is there nobody
 * can remove the job, since requests about it wait. So a record without a job means that nothing was launched; while
 * it can't be read whether there is a job, nobody can remove the record.
 *
 * The store tells when a job that others wait for has changed; once after the start, when all jobs are listed, they are
 * looked up. What has become of each is put on record. The clock is looked at every few seconds, since it may be set,
 * and the machine may sleep. All changes of STATE/held go through one queue.
 *
 * A start fails if the disk does not give a record, and moves a damaged one to STATE/aside.
 */
#include "backend/impl/held.h"

#include <errno.h>
#include <fcntl.h>
#include <time.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/backoff.h"
#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/file.h"
#include "backend/base/random.h"
#include "backend/base/work.h"
#include "backend/impl/impl.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/record/held.h"

#define HELD_MAX 10000u /* jobs that are held */
/* Bytes of a record: a head, a document, and a manifest as YAML. */
#define HELD_MAX_FILE (16u << 20)
#define SOON_MS	      20		    /* how long news are collected */
#define CLOCK_MS      5000		    /* how often the clock is looked at */
#define RAN_MS	      60000		    /* how often it is noted that this kxfs runs, */
#define PAUSE_NS      INT64_C(180000000000) /* and how long a pause in that is worth telling */
#define AGAIN_MS      1000u  /* the pause before a launch is tried again, doubled each time, */
#define AGAIN_MAX_MS  60000u /* at most */
/* How long after its launch a job that nobody has seen is taken to be gone. */
#define UNSEEN_MS    60000
#define LAUNCHES_MAX 8 /* launches at once */

/* A file in STATE/held, whose mtime says when a kxfs ran last. */
#define RAN_FILE ".ran"

enum entry_state { ENTRY_RESTS, ENTRY_LAUNCHES, ENTRY_GOES };

/* Requests that wait until nothing is done about an entry any more. */
struct waiting {
	struct backend_request *rq;
	struct waiting *next;
};

struct entry {
	struct held *h;
	struct spec_held *rec;
	struct spec_job *shape;
	enum entry_state state;
	size_t writes;	      /* writes of its record that are under way */
	bool dirty;	      /* the record has to be written */
	bool gone;	      /* it was removed, which could not be synced yet */
	bool unsure;	      /* it is not known whether the last launch made the job */
	bool unsettled;	      /* the jobs that it waits for have to be looked up */
	bool changed;	      /* its snapshot has to be made again */
	bool begun;	      /* its time to begin had come when it was shown */
	char *refusal;	      /* why the last launch was refused; NULL: none was */
	struct backoff again; /* after launches that were refused */
	/* When the next launch is due, or the next try to write the record, by loop_now_ms. */
	uint64_t next;
	uint64_t launched;   /* when it was launched, by loop_now_ms */
	int64_t from, until; /* see struct spec_held_news */
	struct waiting *waiting;
	/* In LAUNCHES, for the pool: */
	struct work work;
	char *text;
	size_t len;
	struct entry *prev, *next_entry;
	UT_hash_handle hh; /* by submission */
};

struct held {
	struct backend *b;
	struct held_ways ways;
	struct group group;
	struct entry *all;  /* by submission */
	struct entry *list; /* the same, in the order in which they were submitted */
	size_t launching;
	struct work_queue queue;
	struct loop_timer timer; /* fires at DUE */
	uint64_t due;
	struct loop_timer ran_timer;
	struct work ran; /* one at a time */
	bool noting;
	bool loading; /* This much has begun: */
	bool begun;   /* all held jobs on disk were read */
	bool charge;  /* and the mount is up, so jobs may be launched */
	bool stopping;
};

/* Have on_timer see to the entries, in MS at the latest. */
static void see_to(struct held *h, uint64_t ms)
{
	const uint64_t due = loop_now_ms() + ms;

	if (!h->begun || h->stopping || (loop_timer_is_set(&h->timer) && h->due <= due))
		return;
	h->due = due;
	loop_timer_set(&h->timer, ms);
}

static char *held_dir(const struct held *h)
{
	return text_print("%s/held", h->b->config.state_dir);
}

/* --- what others see --- */

/* The job that was launched from E; NULL: it was not seen yet, or is gone. */
static const struct spec_job *job_of(const struct entry *e)
{
	const struct spec_job *job cleanup_job = store_get_uid(e->h->b->store, e->rec->submission);

	return job && !job->held ? take_ptr(job) : NULL;
}

static void show(struct entry *e, int64_t now)
{
	const struct spec_held_news news = {
		.refusal = e->refusal,
		.from = e->from,
		.until = e->until,
		.now = now,
		.passive = e->h->b->config.passive,
	};
	const struct spec_job *job cleanup_job = job_of(e);

	e->changed = false;
	if (!job && e->rec->state != SPEC_HELD_LAUNCHED)
		return store_put(e->h->b->store, spec_held_job(e->rec, e->shape, &news));
}

/* --- the record on disk --- */

struct change {
	struct work work;
	struct entry *e;
	char *head; /* the record's text; NULL: the record is removed */
	bool gone;  /* it was removed, whether or not that could be synced */
	char *dir;
	char *path;
	struct backend_request *asker; /* answered when the change is on disk; NULL: nobody asked */
};

static void change_work(void *data)
{
	struct change *c = data;
	cleanup_free char *text = NULL, *all = NULL;
	size_t len, old, head;

	if (!c->head) {
		c->work.err = disk_unlink(AT_FDCWD, c->path);
		c->gone = !c->work.err || c->work.err == -ENOENT;
		if (c->gone)
			c->work.err = file_sync_dir(c->dir);
		return;
	}
	c->work.err = file_read(c->path, HELD_MAX_FILE, &text, &len);
	if (c->work.err)
		return;
	old = strcspn(text, "\n") + 1;
	head = strlen(c->head);
	all = mem_grow(NULL, head + len - old + 1, 1);
	memcpy(all, c->head, head);
	memcpy(all + head, text + old, len - old);
	c->work.err = file_write(c->dir, strrchr(c->path, '/') + 1, all, head + len - old);
}

static void entry_free(struct entry *e)
{
	HASH_DEL(e->h->all, e);
	DL_DELETE2(e->h->list, e, prev, next_entry);
	spec_held_free(e->rec);
	spec_job_unref(e->shape);
	free(e->refusal);
	free(e->text);
	free(e);
}

/* Is anything being done about E for whose end a request about its job has to wait? */
static bool is_busy(const struct entry *e)
{
	return e->state != ENTRY_RESTS || e->writes || e->rec->state == SPEC_HELD_LAUNCHED;
}

static void resume(struct entry *e)
{
	struct waiting *p;

	while ((p = e->waiting)) {
		LL_DELETE(e->waiting, p);
		loop_post(e->h->b->loop, e->h->ways.run, p->rq);
		free(p);
	}
}

static void change_done(void *data)
{
	struct change *c = data;
	struct entry *e = c->e;
	struct held *h = e->h;
	struct backend_request *asker = c->asker;
	bool removed = !c->head;
	int err = c->work.err;
	const struct spec_job *job cleanup_job = NULL;

	e->gone |= c->gone;
	free(c->head);
	free(c->dir);
	free(c->path);
	free(c);
	e->writes--;
	if (!err && removed) {
		job = store_get_uid(h->b->store, e->rec->submission);
		resume(e);
		entry_free(e);
		if (job && job->held)
			store_remove(h->b->store, job->uid);
	} else if (err) {
		diag(DIAG_ERROR, "%s: what is known of it can't be %s: %s", e->rec->id,
		     removed ? "removed" : "written", strerror(-err));
		e->state = ENTRY_RESTS;
		e->dirty |= !removed;
		/* A release counts only if it is on disk. */
		e->rec->hold |= !removed && asker;
		e->next = loop_now_ms() + AGAIN_MS;
	}
	if (err || !removed) {
		if (asker)
			show(e, loop_time_ns());
		if (!is_busy(e))
			resume(e);
	}
	see_to(h, 0);
	if (asker)
		backend_answer(asker, err, NULL, NULL);
}

/* Write the record of E, or remove it. */
static void change_start(struct entry *e, bool remove, struct backend_request *asker)
{
	struct change *c = new0(struct change);
	struct held *h = e->h;

	c->e = e;
	c->dir = held_dir(h);
	c->path = text_print("%s/%s", c->dir, e->rec->submission);
	c->head = remove ? NULL : spec_held_head(e->rec);
	c->asker = asker;
	c->work = (struct work){.run = change_work,
				.done = change_done,
				.group = &h->group,
				.data = c};
	e->dirty = false;
	if (remove)
		e->state = ENTRY_GOES;
	e->writes++;
	work_enqueue(&c->work, h->b->loop, &h->queue);
}

/* --- a launch --- */

static void end_for(struct entry *e, bool failed, const char *message)
{
	struct spec_held *rec = e->rec;
	cleanup_free char *text = text_copy(message);

	rec->state = SPEC_HELD_OVER;
	rec->failed = failed;
	rec->finished = loop_time_ns();
	spec_set(&rec->message, text);
	change_start(e, false, NULL);
	return show(e, rec->finished);
}

static void launch_ended(struct entry *e, int err, const char *text)
{
	struct held *h = e->h;
	cleanup_free char *why = text_copy(*text ? text : strerror(-err));
	const struct spec_job *job cleanup_job = job_of(e);

	e->state = ENTRY_RESTS;
	h->launching--;
	why[strcspn(why, "\n")] = '\0';
	/* If the job was seen, it was launched, whatever the reply was. */
	if (!err || job) {
		e->rec->state = SPEC_HELD_LAUNCHED;
		e->launched = loop_now_ms();
	} else if (err == -EINVAL || err == -EFBIG || err == -EOPNOTSUPP) {
		diag(DIAG_WARNING, "%s: could not be launched: %s", e->rec->id, why);
		end_for(e, true, why);
	} else {
		if (!streq(e->refusal, why))
			diag(DIAG_WARNING, "%s: could not be launched yet: %s", e->rec->id, why);
		text_set(&e->refusal, "%s", why);
		e->next = loop_now_ms() + backoff_next(&e->again, 0);
		e->changed = true;
	}
	if (!is_busy(e))
		resume(e);
	see_to(h, 0);
}

static void on_launched(void *data, const struct backend_result *result)
{
	struct entry *e = data;

	e->unsure = result->err == -EINPROGRESS;
	launch_ended(e, result->err, result->text);
}

/* Read the record in the file PATH, with the document behind it, malloc'ed, or with MANIFEST the manifest. */
static int read_record(const char *path, struct spec_held **ret, char **ret_text, size_t *ret_len,
		       bool manifest)
{
	cleanup(spec_held_freep) struct spec_held *rec = NULL;
	cleanup_free char *all = NULL;
	const char *document;
	size_t len;
	int err = file_read(path, HELD_MAX_FILE, &all, &len);

	if (!err)
		err = spec_held_parse(all, len, &rec, &document);
	if (err)
		return err;
	*ret_len = (size_t)rec->len;
	if (manifest) {
		document += rec->len;
		*ret_len = (size_t)(all + len - document);
	}
	*ret_text = mem_copy(document, *ret_len);
	*ret = take_ptr(rec);
	return 0;
}

int held_text(const char *state_dir, const struct spec_job *job, enum backend_text which,
	      char **ret, size_t *ret_len)
{
	cleanup(spec_held_freep) struct spec_held *rec = NULL;
	cleanup_free char *path = text_print("%s/held/%s", state_dir, job->uid);

	return read_record(path, &rec, ret, ret_len, which == BACKEND_MANIFEST);
}

static void read_work(void *data)
{
	struct entry *e = data;
	cleanup(spec_held_freep) struct spec_held *rec = NULL;
	cleanup_free char *dir = held_dir(e->h);
	cleanup_free char *path = text_print("%s/%s", dir, e->rec->submission);

	e->work.err = read_record(path, &rec, &e->text, &e->len, false);
}

static void read_done(void *data)
{
	struct entry *e = data;
	struct backend *b = e->h->b;
	cleanup_free char *text = take_ptr(e->text);
	cleanup_free char *why = NULL;

	if (e->work.err) {
		why = text_print("its record can't be read: %s", file_fault(e->work.err));
		launch_ended(e, -EIO, why);
	} else if (!b->up) {
		launch_ended(e, -ECANCELED, "kxfs is ending");
	} else {
		e->h->ways.pass(e->h->ways.make(b, e->rec, BACKEND_SUBMIT, e->unsure, text, e->len,
						on_launched, e));
	}
}

static void launch(struct entry *e)
{
	struct held *h = e->h;

	e->state = ENTRY_LAUNCHES;
	h->launching++;
	e->work = (struct work){.run = read_work, .done = read_done, .group = &h->group, .data = e};
	work_start(&e->work, h->b->loop);
}

/* --- whose turn it is --- */

static bool is_whole(const struct held *h)
{
	struct backend *b = h->b;

	return !b->ops->is_whole || b->ops->is_whole(b);
}

/* Look up what E waits for: it may have ended, or gone, without that having been told. */
static void look_up(struct entry *e)
{
	for (size_t i = 0; i < e->rec->n_after; i++) {
		struct spec_held_after *a = &e->rec->after[i];
		const struct spec_job *job cleanup_job = store_get_uid(e->h->b->store, a->uid);

		e->dirty |= spec_held_settle(a, NULL, job);
	}
	e->unsettled = false;
	e->changed |= e->dirty;
}

/* E was launched, or is over: may it be forgotten? */
static bool is_done(const struct entry *e, int64_t now, bool whole)
{
	const struct spec_job *job cleanup_job = job_of(e);

	if (e->rec->state == SPEC_HELD_OVER)
		return now - e->rec->finished > e->h->b->config.history_keep * NS_PER_S;
	/* The job may be on its way here. */
	return job || (whole && loop_now_ms() - e->launched > UNSEEN_MS);
}

/* Decide about E, which RESTS, and return in how many ms to look again, at the latest; 0: it need not. */
static uint64_t consider(struct entry *e, int64_t now, bool whole)
{
	const struct held *h = e->h;
	struct spec_held *rec = e->rec;
	const uint64_t now_ms = loop_now_ms();
	const bool begun = rec->begin <= now;
	const struct spec_job *job cleanup_job = NULL;
	uint64_t again = 0;

	if (e->next > now_ms) {
		if (e->changed)
			show(e, now);
		return e->next - now_ms;
	}
	if (e->gone || rec->state != SPEC_HELD_WAITS) {
		/* Who has removed it was told of the error, and may not try again: a crash must not bring it back. */
		if (e->gone || is_done(e, now, whole))
			change_start(e, true, NULL);
		else if (e->dirty)
			change_start(e, false, NULL);
		return CLOCK_MS;
	}
	job = job_of(e);
	if (job) { /* an earlier launch has taken effect late */
		rec->state = SPEC_HELD_LAUNCHED;
		return SOON_MS;
	}
	if (e->unsettled && whole)
		look_up(e);
	e->changed |= begun != e->begun;
	e->begun = begun;
	switch (h->charge ? spec_held_judge(rec, now) : SPEC_DECISION_WAIT) {
	case SPEC_DECISION_NEVER:
		end_for(e, false, rec->message);
		return 0;
	case SPEC_DECISION_GO:
		/* A release counts only when its record is written. */
		if (h->launching < LAUNCHES_MAX && !e->writes)
			launch(e);
		break;
	case SPEC_DECISION_WAIT:
		if (e->unsettled || !begun)
			again = CLOCK_MS;
		if (!begun)
			again = min_of(again, (uint64_t)(rec->begin - now) / 1000000 + 1);
		break;
	}
	if (e->dirty && e->state == ENTRY_RESTS)
		change_start(e, false, NULL);
	if (e->changed)
		show(e, now);
	return again;
}

static void look_now(void *data)
{
	struct held *h = data;
	struct entry *e, *next;
	const int64_t now = loop_time_ns();
	const bool whole = is_whole(h);
	uint64_t ms = 0;

	DL_FOREACH_SAFE2(h->list, e, next, next_entry) {
		uint64_t again = e->state == ENTRY_RESTS ? consider(e, now, whole) : 0;

		if (again)
			ms = ms ? min_of(ms, again) : again;
	}
	if (ms)
		see_to(h, ms);
}

void held_news(struct held *h, const struct spec_job *old, const struct spec_job *now)
{
	bool ended = now && spec_job_has_ended(now) && !now->unexplained;
	bool before = old && spec_job_has_ended(old) && !old->unexplained;
	struct entry *e;

	if (!h->list || (now && (before || (!ended && !(old && old->held && !now->held)))))
		return;
	DL_FOREACH2(h->list, e, next_entry)
		for (size_t i = 0; e->rec->state == SPEC_HELD_WAITS && i < e->rec->n_after; i++)
			if (spec_held_means(&e->rec->after[i], now ? now : old) &&
			    spec_held_settle(&e->rec->after[i], old, now))
				e->dirty = e->changed = true;
	see_to(h, SOON_MS);
}

/* --- making one --- */

struct making {
	struct held *h;
	struct backend_request *rq;
	struct spec_held *rec;
	struct spec_job *shape;
	struct work work;
	char *manifest;
	char *text; /* what is wrong, as text for people */
};

static void making_end(struct making *m, int err, const char *id, const char *text)
{
	struct backend_request *rq = m->rq;
	cleanup_free char *why = text ? text_copy(text) : NULL;

	spec_held_free(m->rec);
	spec_job_unref(m->shape);
	free(m->manifest);
	free(m->text);
	free(m);
	return backend_answer(rq, err, id, why);
}

static struct entry *entry_new(struct held *h, struct spec_held *rec, struct spec_job *shape)
{
	struct entry *e = new0(struct entry);

	e->h = h;
	e->rec = rec;
	e->shape = shape;
	e->begun = rec->begin <= loop_time_ns();
	e->unsettled = rec->n_after > 0;
	e->again = backoff_begin(AGAIN_MS, AGAIN_MAX_MS);
	HASH_ADD_KEYPTR(hh, h->all, rec->submission, strlen(rec->submission), e);
	DL_APPEND2(h->list, e, prev, next_entry);
	return e;
}

/* Runs on the pool: note that a kxfs runs, which is done now and then while a job is held. */
static void ran_work(void *data)
{
	struct held *h = data;
	cleanup_free char *dir = held_dir(h);
	cleanup_free char *path = text_print("%s/" RAN_FILE, dir);
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_WRONLY | O_CREAT);

	/* That this can't be noted harms nothing. */
	if (fd >= 0)
		(void)disk_touch(fd, "", -1);
}

static void ran_done(void *data)
{
	struct held *h = data;

	h->noting = false;
}

static void note_ran(struct held *h)
{
	h->noting = true;
	h->ran = (struct work){.run = ran_work, .done = ran_done, .group = &h->group, .data = h};
	work_start(&h->ran, h->b->loop);
	loop_timer_set(&h->ran_timer, RAN_MS);
}

static void on_ran_timer(void *data)
{
	struct held *h = data;

	if (h->list && !h->noting)
		note_ran(h);
	else if (h->list)
		loop_timer_set(&h->ran_timer, RAN_MS);
}

static int make_dir(const struct held *h, const char *dir)
{
	int err = disk_mkdir(AT_FDCWD, dir);

	return err == -EEXIST ? 0 : err ? err : file_sync_dir(h->b->config.state_dir);
}

static void write_work(void *data)
{
	struct making *m = data;
	const struct backend_request *rq = m->rq;
	struct spec_held *rec = m->rec;
	cleanup_free char *dir = held_dir(m->h);
	cleanup_free char *path = text_print("%s/%s", dir, rec->submission);
	cleanup_free char *rest = NULL, *head = NULL, *all = NULL;
	size_t n, n_all;
	FILE *out = text_stream(&rest, &n);
	char digest[65];
	int gone;

	m->shape = spec_held_shape(rq->text, rq->len, m->h->b->config.home);
	fwrite(rq->text, 1, rq->len, out);
	fputs(m->manifest, out);
	text_stream_close(out);
	spec_held_digest(rest, n, digest);
	spec_set(&rec->digest, digest);
	rec->len = (int64_t)rq->len;
	head = spec_held_head(rec);
	out = text_stream(&all, &n_all);
	fputs(head, out);
	fwrite(rest, 1, n, out);
	text_stream_close(out);
	m->work.err = make_dir(m->h, dir);
	if (!m->work.err)
		m->work.err = file_make(dir, rec->submission, all, n_all);
	if (!m->work.err)
		return;
	m->text = text_print("%s: the job can't be recorded in %s: %s; nothing was launched\n",
			     rq->file, dir, strerror(-m->work.err));
	gone = disk_unlink(AT_FDCWD, path);
	/* file_make may have removed it again, but that is not on disk. */
	if (!gone || gone == -ENOENT)
		gone = file_sync_dir(dir);
	if (!gone || gone == -ENOENT || gone == -ENOTDIR)
		return;
	text_set(&m->text,
		 "%s: the job can't be recorded in %s: %s; and its record can't be taken away: %s. "
		 "Whether it is held is known when kxfs has been started again\n",
		 rq->file, dir, strerror(-m->work.err), strerror(-gone));
	m->work.err = -EINPROGRESS;
}

static void write_done(void *data)
{
	struct making *m = data;
	struct held *h = m->h;
	struct entry *e;

	if (m->work.err)
		return making_end(m, m->work.err, NULL, m->text);
	e = entry_new(h, take_ptr(m->rec), take_ptr(m->shape));
	show(e, loop_time_ns());
	see_to(h, 0);
	if (!loop_timer_is_set(&h->ran_timer))
		note_ran(h);
	return making_end(m, 0, e->rec->id, NULL);
}

static void on_dry_run(void *data, const struct backend_result *result)
{
	struct making *m = data;
	struct spec_held *rec = m->rec;
	struct held *h = m->h;
	const struct spec_job *other cleanup_job = NULL;

	if (result->err)
		return making_end(m, result->err, NULL, result->text);
	other = store_get(h->b->store, BACKEND_JOBS, result->id);
	if (other || HASH_COUNT(h->all) >= HELD_MAX) {
		m->text = other ? text_print("%s: a job named %s exists already; nothing was "
					     "launched\n",
					     rec->file, result->id)
				: text_print("%s: %u jobs are held already; nothing was "
					     "launched\n",
					     rec->file, HELD_MAX);
		return making_end(m, other ? -EEXIST : -ENOSPC, NULL, m->text);
	}
	rec->created = loop_time_ns();
	spec_set(&rec->id, result->id);
	spec_set(&rec->backend, result->backend);
	spec_set(&rec->namespace, result->namespace);
	m->manifest = text_copy(result->manifest);
	m->work =
		(struct work){.run = write_work, .done = write_done, .group = &h->group, .data = m};
	work_enqueue(&m->work, h->b->loop, &h->queue);
}

static bool find_in(struct held *h, const char *id, struct spec_held_after *ret)
{
	for (int place = BACKEND_JOBS; place <= BACKEND_HISTORY; place++) {
		const struct spec_job *job cleanup_job =
			store_get(h->b->store, (enum backend_place)place, id);

		if (!job)
			continue;
		spec_set(&ret->id, job->id);
		spec_set(&ret->uid, job->uid);
		spec_set(&ret->submission, job->own ? job->submission : "");
		(void)spec_held_settle(ret, NULL, job);
		return true;
	}
	return false;
}

/* The find() of a struct spec_held_place. Any thread. */
static bool find_job(void *data, const char *name, struct spec_held_after *ret)
{
	static const char *const ends[] = {"", ".yaml", ".yml", ".json"};
	struct held *h = data;
	const struct backend_events *events = &h->b->events;
	bool found = find_in(h, name, ret);

	for (size_t i = 0; !found && events->job_of && i < array_size(ends); i++) {
		cleanup_free char *file = text_print("%s%s", name, ends[i]);
		cleanup_free char *id = events->job_of(events->data, file);

		found = id && find_in(h, id, ret);
	}
	return found;
}

/* The moment at which local clocks show what a clock in UTC shows at UTC, both in ns. */
static int64_t local_moment(int64_t utc)
{
	time_t seconds = utc / NS_PER_S;
	struct tm tm;

	gmtime_r(&seconds, &tm);
	tm.tm_isdst = -1;
	return mktime(&tm) * NS_PER_S;
}

static void look_work(void *data)
{
	struct making *m = data;
	const struct backend_request *rq = m->rq;
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	const struct spec_held_place place = {.now = loop_time_ns(),
					      .local = local_moment,
					      .find = find_job,
					      .data = m->h};
	struct spec_held *rec;

	m->work.err = spec_held_read(rq->text, rq->len, &place, &rec, &e);
	m->rec = rec;
	if (m->work.err) {
		m->text = spec_errors_text(&e, rq->file);
		return;
	}
	if (!rec)
		return;
	for (size_t i = 0; i < array_size(rec->seed) && !m->work.err; i++)
		m->work.err = random_name(&rec->seed[i]);
	rec->readable = rq->readable;
	spec_set(&rec->file, rq->file);
	spec_set(&rec->submitter, rq->submitter);
	spec_set(&rec->submission, rq->submission);
}

static void look_done(void *data)
{
	struct making *m = data;
	struct backend_request *rq = m->rq;
	struct backend *b = m->h->b;
	void (*pass)(struct backend_request *) = m->h->ways.pass;

	if (m->work.err)
		return making_end(m, m->work.err, NULL, m->text);
	if (!b->up)
		return making_end(m, -ENOTCONN, NULL, "kxfs is ending");
	if (m->rec && rq->kind == BACKEND_SUBMIT)
		return pass(m->h->ways.make(b, m->rec, BACKEND_DRY_RUN, false, rq->text, rq->len,
					    on_dry_run, m));
	spec_held_free(m->rec);
	free(m);
	return pass(rq);
}

/*
 * May the document of RQ hold its job? Only one that has one of these words, or can spell it in another way, has to be
 * read.
 */
static bool may_hold(const struct backend_request *rq)
{
	bool may = memchr(rq->text, '\\', rq->len);

	for (size_t i = 0; i < SPEC_N_HOLDS; i++) {
		const char *word = spec_hold_name(i);

		may |= memmem(rq->text, rq->len, word, strlen(word)) != NULL;
	}
	return may;
}

/* --- requests --- */

bool held_takes(struct held *h, struct backend_request *rq)
{
	const struct spec_job *job cleanup_job = NULL;
	struct entry *e = NULL;
	struct making *m;
	struct waiting *p;

	if (rq->kind == BACKEND_SUBMIT || rq->kind == BACKEND_DRY_RUN) {
		if (!may_hold(rq))
			return false;
		m = new0(struct making);
		m->h = h;
		m->rq = rq;
		m->work = (struct work){.run = look_work,
					.done = look_done,
					.group = &h->group,
					.data = m};
		work_start(&m->work, h->b->loop);
		return true;
	}
	job = store_get_uid(h->b->store, rq->uid);
	if (job && job->own)
		HASH_FIND_STR(h->all, job->submission, e);
	if (!e || (!job->held && !is_busy(e)))
		return false;
	if (is_busy(e)) {
		p = new0(struct waiting);
		p->rq = rq;
		LL_APPEND(e->waiting, p);
	} else if (rq->kind == BACKEND_CANCEL && e->unsure) {
		backend_refuse(rq, -EAGAIN,
			       "it is not known yet whether it was launched: nothing was "
			       "removed; try again later");
	} else if (rq->kind == BACKEND_CANCEL) {
		change_start(e, true, rq);
	} else if (rq->action != SPEC_RELEASE || !e->rec->hold) {
		backend_answer_no_effect(rq, job->phase);
	} else {
		e->rec->hold = false;
		e->changed = true;
		change_start(e, false, rq);
	}
	return true;
}

/* --- what a start finds --- */

struct found {
	struct spec_held *rec;
	struct spec_job *shape;
};

struct load {
	struct held *h;
	struct work work;
	struct found *v;
	size_t n;
	int64_t ran; /* when a kxfs ran last, in ns; 0: not known */
	int err;     /* why the disk does not give all of it */
	char *text;  /* the same in words */
	held_begun_fn fn;
	void *data;
};

/* The record PATH of a submission can't be used, for ERR: move it out of the way. */
static void put_aside(const struct held *h, const char *path, const char *submission, int err)
{
	cleanup_free char *name = text_print("%s.held", submission), *place = NULL;
	int moved = -EROFS;

	if (!h->b->config.passive)
		moved = file_aside_state(path, h->b->config.state_dir, name, &place);
	diag(DIAG_WARNING, "%s %s; the job is not shown, and never launched; the record is %s",
	     path, file_fault(err), moved ? "left there" : place);
}

static int load_one(void *data, int at, const char *name, unsigned char type)
{
	struct load *l = data;
	const char *home = l->h->b->config.home;
	cleanup(spec_held_freep) struct spec_held *rec = NULL;
	cleanup_free char *text = NULL, *dir = held_dir(l->h);
	cleanup_free char *path = text_print("%s/%s", dir, name);
	size_t len;
	int err;

	if (*name == '.')
		return 0;
	err = read_record(path, &rec, &text, &len, false);
	if (!err && !streq(rec->submission, name))
		err = -EINVAL;
	if (err && file_fault_may_pass(err)) {
		l->text = text_print(
			"%s can't be read: %s; to start without that job, mv %s elsewhere", path,
			strerror(-err), path);
		return l->err = err;
	}
	if (err) {
		put_aside(l->h, path, name, err);
		return 0;
	}
	l->v = mem_grow(l->v, l->n + 1, sizeof(*l->v));
	l->v[l->n].shape = spec_held_shape(text, len, home);
	l->v[l->n++].rec = take_ptr(rec);
	return 0;
}

static void load_work(void *data)
{
	struct load *l = data;
	cleanup_free char *dir = held_dir(l->h);
	cleanup_free char *path = text_print("%s/" RAN_FILE, dir);
	struct stat st;
	int err;

	if (disk_stat(AT_FDCWD, path, &st) == 0)
		l->ran = spec_time_of(st.st_mtim);
	err = disk_list(AT_FDCWD, dir, load_one, l);
	if (err && err != -ENOENT && !l->err) {
		l->text = text_print("%s can't be read: %s", dir, strerror(-err));
		l->err = err;
	}
}

static int by_age(const struct entry *x, const struct entry *y)
{
	if (x->rec->created != y->rec->created)
		return x->rec->created < y->rec->created ? -1 : 1;
	return strcmp(x->rec->submission, y->rec->submission);
}

static void load_done(void *data)
{
	struct load *l = data;
	struct held *h = l->h;
	const int64_t now = loop_time_ns();
	cleanup_free char *text = l->text;
	const held_begun_fn fn = l->fn;
	void *arg = l->data;
	const int err = l->err;

	for (size_t i = 0; i < l->n; i++) {
		struct found *found = &l->v[i];
		const char *submission = found->rec->submission;
		const struct spec_job *job cleanup_job = NULL;
		struct entry *e;
		int64_t since;

		if (err) {
			spec_held_free(found->rec);
			spec_job_unref(found->shape);
			continue;
		}
		e = entry_new(h, found->rec, found->shape);
		job = job_of(e);
		since = max_of(l->ran, e->rec->created);
		if (l->ran && now - since > PAUSE_NS) {
			e->from = since;
			e->until = now;
		}
		e->launched = loop_now_ms();
		if (job && e->rec->state == SPEC_HELD_WAITS)
			e->rec->state = SPEC_HELD_LAUNCHED;
		show(e, now);
		/*
		 * The name may not show the job, since a crash came before its record was written or synced. Of what
		 * was launched the implementation tells.
		 */
		if (e->rec->state != SPEC_HELD_LAUNCHED)
			backend_launched(h->b, e->rec->file, e->rec->id, submission);
	}
	DL_SORT2(h->list, by_age, prev, next_entry);
	h->begun = !err;
	see_to(h, 0);
	if (h->list && !h->stopping && !loop_timer_is_set(&h->ran_timer))
		note_ran(h);
	free(l->v);
	free(l);
	return fn(arg, err, text);
}

void held_begin(struct held *h, held_begun_fn fn, void *data)
{
	struct load *l;

	if (h->loading || h->stopping)
		return;
	h->loading = true;
	l = new0(struct load);
	l->h = h;
	l->fn = fn;
	l->data = data;
	l->work = (struct work){.run = load_work, .done = load_done, .group = &h->group, .data = l};
	work_enqueue(&l->work, h->b->loop, &h->queue);
}

/* --- life --- */

void held_take_charge(struct held *h)
{
	h->charge = true;
	see_to(h, 0);
}

struct held *held_new(struct backend *b, const struct held_ways *ways)
{
	struct held *h = new0(struct held);

	h->b = b;
	h->ways = *ways;
	group_init(&h->group, b->loop);
	loop_timer_init(&h->timer, b->loop, look_now, h);
	loop_timer_init(&h->ran_timer, b->loop, on_ran_timer, h);
	return h;
}

void held_stop(struct held *h, loop_fn fn, void *data)
{
	struct entry *e;
	struct waiting *p;

	h->stopping = true;
	loop_timer_stop(&h->timer);
	if (h->list && !h->noting)
		note_ran(h);
	loop_timer_stop(&h->ran_timer);
	DL_FOREACH2(h->list, e, next_entry)
		while ((p = e->waiting)) {
			LL_DELETE(e->waiting, p);
			backend_answer(p->rq, -ENOTCONN, NULL, "kxfs is ending");
			free(p);
		}
	group_when_empty(&h->group, fn, data);
}

void held_free(struct held *h)
{
	if (!h)
		return;
	while (h->list)
		entry_free(h->list);
	free(h);
}
