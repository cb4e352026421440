/* SPDX-License-Identifier: MIT */
/*
 * A making is a request to submit or dry-run a document. A document may have conditions for the
 * launch, such as a begin time. If a submission has conditions, its making becomes an entry. An
 * entry is a job that is unknown to the implementation. It has a record, whose key is the
 * submission's UUID, and at most one operation at a time.
 *
 *	making | what is in progress       | what ends it                | next
 *	LOOK   | the pool reads the        | there are no conditions     | pass on the request
 *	       | document's conditions     | the request is a dry run    | pass on the request
 *	       |                           | a condition can't be read   | refuse the request
 *	       |                           | a submission has conditions | DRY
 *	DRY    | the implementation does a | the dry run fails           | refuse the request
 *	       | dry run                   | the dry run succeeds        | WRITE
 *	WRITE  | the record is written     | the record is on disk       | make an entry, and
 *	       |                           |                             | answer: held
 *	       |                           | the record can't be written | refuse the request
 *
 *	entry    | what is in progress        | what ends it                 | next
 *	RESTS    | nothing                    | all conditions are met       | LAUNCHES
 *	         |                            | the record must be changed   | COMMITS
 *	         |                            | the record must be removed   | REMOVES
 *	         |                            | the record is LIVE on disk   | (freed)
 *	LAUNCHES | the record becomes         | launched, or refused         | COMMITS
 *	         | SUBMITTING, then the docu- | the outcome is unknown, or   | RESTS
 *	         | ment is read and submitted | the disk fails               |
 *	SENDS    | a submission that was not  | launched, or outcome unknown | RESTS
 *	         | held waits for its reply   | refused                      | COMMITS, REMOVES
 *	COMMITS  | a change of the record     | the write succeeds or fails  | RESTS
 *	REMOVES  | the removal of the record  | the removal succeeds         | (freed)
 *	         |                            | the removal fails            | RESTS
 *
 * A job is launched at most once, because its record is SUBMITTING on disk before kxfs sends a
 * request. If the request is refused for a temporary reason, the record becomes HELD again.
 * Conditions that were met remain met.
 *
 * After a lost reply or a crash of kxfs, the outcome is unknown. The record then remains SUBMITTING
 * until the job appears in the store. If ASKED_MS have passed, and the store has all jobs but not
 * this one, a held job waits for the user's `release`, and the record of any other job becomes
 * NEVER. A local job that is not in the store when kxfs starts was certainly not launched.
 */
#include "backend/impl/held.h"

#include <errno.h>
#include <time.h>

#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/file.h"
#include "backend/base/random.h"
#include "backend/base/work.h"
#include "backend/impl/impl.h"
#include "backend/jobs/records.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/record/held.h"

#define HELD_MAX 10000u
/* how long kxfs collects changes of jobs before it checks conditions */
#define SOON_MS 20
/* kxfs reads the clock this often, because users may set it and the machine may sleep. */
#define CLOCK_MS 5000
/* pauses between retries of a launch; each failure doubles the pause */
#define AGAIN_MS     1000u
#define AGAIN_MAX_MS 60000u
/*
 * How long a job may take to appear after a launch request. kube/kinds.c also needs this time to
 * find out whether the cluster serves the job's kind.
 */
#define ASKED_MS     600000
#define LAUNCHES_MAX 8 /* launches at the same time */

enum entry_state { ENTRY_RESTS, ENTRY_COMMITS, ENTRY_LAUNCHES, ENTRY_SENDS, ENTRY_REMOVES };

struct held_entry {
	struct held *h;
	struct record *r;      /* pinned, except during its removal */
	struct spec_held *rec; /* NULL if the job was not held */
	struct spec_job *shape;
	enum entry_state state;
	struct backend_request *asker; /* the request that caused COMMITS or REMOVES, or NULL */
	/* numbers of met conditions: known now; in the record on disk; in the current write */
	unsigned met, saved, writing;
	bool unsettled; /* look_up() must still be called */
	bool changed;	/* the snapshot is out of date */
	bool begun;	/* the begin time had passed at the last snapshot */
	bool written;	/* the record is LIVE on disk, not only in memory */
	/*
	 * Valid while the record is SUBMITTING. SPEC_SENDING in RESTS means that the job was not
	 * launched, because in RESTS no launch is in progress.
	 */
	enum spec_sending sending;
	uint64_t asked;	      /* until when kxfs waits for the job to appear, by loop_now_ms */
	char *refusal;	      /* why the last launch was refused, or NULL */
	struct backoff again; /* pauses after refused launches */
	uint64_t next;	      /* when the next step is due, by loop_now_ms */
	struct backend_request *waiting; /* requests that wait for the end of the operation */
	struct work work;		 /* in LAUNCHES: sets TEXT and LEN on the pool */
	char *text;
	size_t len;
	struct held_entry *prev, *next_entry;
	UT_hash_handle hh;
};

struct held {
	struct backend *b;
	struct group group;
	struct held_entry *all;
	struct held_entry *list; /* in the order of submission */
	size_t launching;
	struct loop_timer timer; /* fires at DUE */
	uint64_t due;
	enum { HELD_NEW, HELD_LOADS, HELD_SHOWS, HELD_LAUNCHES, HELD_STOPS } phase;
};

static bool is_stopping(const struct held *h)
{
	return h->phase == HELD_STOPS;
}

/* Call look_now within MS milliseconds. */
static void consider_within(struct held *h, uint64_t ms)
{
	const uint64_t due = loop_now_ms() + ms;

	if (h->phase < HELD_SHOWS || is_stopping(h) ||
	    (loop_timer_is_set(&h->timer) && h->due <= due))
		return;
	h->due = due;
	loop_timer_set(&h->timer, ms);
}

static bool is_local_head(const struct spec_head *head)
{
	return streq(head->backend, "local");
}

static bool is_local(const struct held_entry *e)
{
	return is_local_head(record_head(e->r));
}

static enum record_state state_of(const struct held_entry *e)
{
	return record_head(e->r)->state;
}

/* the reason in a record that exists although the user has removed the job */
#define REMOVED "Removed"
/* the reason in the record of a job that was not held and does not exist */
#define NOT_LAUNCHED "NotLaunched"

/* True if the job was certainly launched. */
static bool is_launched(const struct held_entry *e)
{
	return state_of(e) == RECORD_LIVE || state_of(e) == RECORD_HISTORY;
}

/* True if the user has removed the job. */
static bool is_gone(const struct held_entry *e)
{
	return state_of(e) == RECORD_NEVER && streq(record_head(e->r)->more->reason, REMOVED);
}

/* --- snapshots of jobs --- */

/* Return the job that was launched from E, or NULL if the store does not have it. */
static const struct spec_job *job_of(const struct held_entry *e)
{
	const struct spec_job *job cleanup_job =
		store_get_uid(e->h->b->store, record_head(e->r)->key);

	return job && !job->held ? take_ptr(job) : NULL;
}

static bool has_job(const struct held_entry *e)
{
	const struct spec_job *job cleanup_job = job_of(e);

	return job;
}

static void show(struct held_entry *e, int64_t now)
{
	const struct spec_held_progress progress = {
		.refusal = e->refusal,
		.now = now,
		.passive = e->h->b->config.passive,
		.sending = e->sending,
	};
	const struct spec_job *job cleanup_job = job_of(e);

	e->changed = false;
	if (!job && !is_gone(e) && !is_launched(e))
		return store_put(e->h->b->store,
				 spec_held_job(record_head(e->r), e->rec, e->shape, &progress));
}

/* --- the record --- */

static void count_met(struct held_entry *e, unsigned met, unsigned saved)
{
	struct removal_waits *removals = &e->h->b->removals;

	removals->unsaved -= e->met != e->saved;
	e->met = met;
	e->saved = saved;
	removals->unsaved += e->met != e->saved;
}

static void entry_free(struct held_entry *e)
{
	count_met(e, 0, 0);
	if (e->r)
		record_unpin(e->r);
	HASH_DEL(e->h->all, e);
	DL_DELETE2(e->h->list, e, prev, next_entry);
	spec_held_free(e->rec);
	spec_job_unref(e->shape);
	free(e->refusal);
	free(e->text);
	free(e);
}

/* True if requests must wait: an operation is in progress, or E is about to be freed. */
static bool is_busy(const struct held_entry *e)
{
	return e->state != ENTRY_RESTS || is_gone(e) || is_launched(e);
}

static void resume(struct held_entry *e)
{
	struct backend_request *rq;

	while ((rq = e->waiting)) {
		LL_DELETE(e->waiting, rq);
		loop_post(e->h->b->loop, held_run, rq);
	}
}

/* Free E, because the implementation now knows its job. */
static void retire(struct held_entry *e)
{
	resume(e);
	return entry_free(e);
}

static void rest(struct held_entry *e)
{
	e->state = ENTRY_RESTS;
	if (!is_busy(e))
		resume(e);
	consider_within(e->h, 0);
}

/* See records_set_part. */
static char *hold_part(void *data, const struct record *r, const struct spec_head *next,
		       enum record_part part)
{
	const struct held *h = data;
	struct held_entry *e;

	HASH_FIND_STR(h->all, next->key, e);
	if (e)
		e->writing = e->met;
	if (next->state != RECORD_HELD)
		return text_copy("");
	return e ? spec_held_part(e->rec) : NULL;
}

static void launch(struct held_entry *e);
static void commit(struct held_entry *e, const struct record_change *change,
		   struct backend_request *asker);

/* Answer the request that caused the change of E. ERR is 0 if the change is on disk. */
static void answer_asker(struct held_entry *e, int err)
{
	struct backend_request *rq = take_ptr(e->asker);

	if (rq && rq->kind == BACKEND_CANCEL && !err) {
		store_remove(e->h->b->store, record_head(e->r)->key);
	} else if (rq && rq->kind == BACKEND_CONTROL) {
		/* If the release is not on disk, the job stays held. */
		e->rec->hold = err;
		/* Do this before the answer, so that the user sees the new snapshot. */
		show(e, loop_time_ns());
	}
	if (rq)
		backend_answer(rq, err, NULL, NULL);
}

static void delay(struct held_entry *e)
{
	e->next = loop_now_ms() + backoff_next(&e->again, 0);
	e->changed = true;
}

static void delay_launch(struct held_entry *e, const char *why)
{
	if (!streq(e->refusal, why))
		diag(DIAG_WARNING, "%s: kxfs can't launch the job yet, and retries: %s",
		     record_head(e->r)->id, why);
	text_set(&e->refusal, "%s", why);
	delay(e);
}

static void on_committed(void *data, int err)
{
	struct held_entry *e = data;
	struct held *h = e->h;
	const bool wanted = e->asker;
	cleanup_free char *why = NULL;

	answer_asker(e, err);
	if (!err) {
		/* Only a HELD record has conditions. */
		count_met(e, e->met, state_of(e) == RECORD_HELD ? e->writing : e->met);
		backend_answer_removals(h->b);
	}
	if (e->state == ENTRY_LAUNCHES) {
		if (!err && h->b->up && !is_stopping(h))
			return launch(e);
		h->launching--;
		/* kxfs is stopping, and has sent nothing, so hold the job again. */
		if (!err)
			return commit(e, &(struct record_change){.state = RECORD_HELD}, NULL);
	}
	e->written |= !err && state_of(e) == RECORD_LIVE;
	if (e->written && !is_local(e) && has_job(e))
		return retire(e);
	if (err && !wanted && e->rec) {
		why = text_print("kxfs can't write the job's record: %s", strerror(-err));
		delay_launch(e, why);
	} else if (err && !wanted) {
		delay(e);
	}
	show(e, loop_time_ns());
	return rest(e);
}

static void commit(struct held_entry *e, const struct record_change *change,
		   struct backend_request *asker)
{
	e->state = ENTRY_COMMITS;
	e->asker = asker;
	return records_commit(e->r, change, on_committed, e);
}

static void on_removed(void *data, int err)
{
	struct held_entry *e = data;
	struct held *h = e->h;
	struct backend_request *asker = take_ptr(e->asker);

	if (err) {
		record_pin(e->r);
		e->next = loop_now_ms() + AGAIN_MS;
		show(e, loop_time_ns());
		rest(e);
	} else {
		e->r = NULL;
		resume(e);
		entry_free(e);
		backend_answer_removals(h->b);
	}
	if (asker)
		backend_answer(asker, err, NULL, NULL);
}

/* Remove the record of E, then free E and answer ASKER, which may be NULL. */
static void remove_record(struct held_entry *e, struct backend_request *asker)
{
	const struct spec_job *job cleanup_job =
		store_get_uid(e->h->b->store, record_head(e->r)->key);

	e->state = ENTRY_REMOVES;
	e->asker = asker;
	if (job && job->held)
		store_remove(e->h->b->store, job->uid);
	if (record_is_going(e->r))
		return retire(e);
	record_unpin(e->r);
	return records_remove(e->r, false, on_removed, e);
}

static void end_for(struct held_entry *e, const char *reason, const char *why)
{
	return commit(e,
		      &(struct record_change){.state = RECORD_NEVER, .reason = reason, .why = why},
		      NULL);
}

/* Record that E's job was launched. The record in memory shows this even if the write fails. */
static void was_launched(struct held_entry *e)
{
	const struct spec_job *job cleanup_job = job_of(e);
	const struct record_change change = {.state = RECORD_LIVE, .uid = job ? job->uid : NULL};

	if (state_of(e) == RECORD_HISTORY || record_is_going(e->r) || is_local(e))
		return retire(e);
	if (state_of(e) != RECORD_LIVE)
		e->asked = loop_now_ms() + ASKED_MS;
	records_note(e->r, &change, SOON_MS);
	return commit(e, &change, NULL);
}

/* --- a launch --- */

static void launch_ended(struct held_entry *e, int err, const char *text)
{
	struct held *h = e->h;
	cleanup_free char *why = text_copy(*text ? text : strerror(-err));
	const struct spec_job *job cleanup_job = job_of(e);

	h->launching--;
	why[strcspn(why, "\n")] = '\0';
	/* If the store has the job, the job was launched, even if the reply is an error. */
	if (!err || job || is_launched(e))
		return was_launched(e);
	if (err == -EINVAL || err == -EFBIG || err == -EOPNOTSUPP) {
		diag(DIAG_WARNING, "%s: kxfs could not launch the job: %s", record_head(e->r)->id,
		     why);
		return end_for(e, "LaunchFailed", why);
	}
	delay_launch(e, why);
	if (err == -EINPROGRESS) {
		e->sending = SPEC_SENDING_ASKED;
		e->asked = loop_now_ms() + ASKED_MS;
	}
	show(e, loop_time_ns());
	if (err == -EINPROGRESS)
		return rest(e);
	return commit(e, &(struct record_change){.state = RECORD_HELD}, NULL);
}

static void on_launched(void *data, const struct backend_result *result)
{
	launch_ended(data, result->err, result->text);
}

static void read_work(void *data)
{
	struct held_entry *e = data;

	e->work.err = record_file_read_rest(e->h->b->config.state_dir, record_head(e->r)->key,
					    false, &e->text, &e->len);
}

static void read_done(void *data)
{
	struct held_entry *e = data;
	struct backend *b = e->h->b;
	cleanup_free char *text = take_ptr(e->text);
	cleanup_free char *why = NULL;
	const bool again = e->sending == SPEC_SENDING_ASKED;

	e->sending = SPEC_SENDING;
	if (e->work.err) {
		why = text_print("kxfs can't read the job's record: %s", file_fault(e->work.err));
		launch_ended(e, -EIO, why);
	} else if (!b->up) {
		launch_ended(e, -ECANCELED, "kxfs is shutting down");
	} else if (is_launched(e)) {
		/*
		 * The job has appeared in the store meanwhile, so don't launch it again. Its record
		 * is LIVE now, and no longer has the data that a launch needs.
		 */
		launch_ended(e, 0, "");
	} else {
		backend_pass_held(b, record_head(e->r), BACKEND_SUBMIT, again, text, e->len,
				  on_launched, e);
	}
}

/* Launch E, which must be in LAUNCHES, with a record that is SUBMITTING on disk. */
static void launch(struct held_entry *e)
{
	struct held *h = e->h;
	const struct spec_job *job cleanup_job = job_of(e);

	free(take_ptr(e->refusal));
	if (job)
		return launch_ended(e, 0, "");
	e->work = (struct work){.run = read_work, .done = read_done, .group = &h->group, .data = e};
	work_start(&e->work, h->b->loop);
}

static void begin_launch(struct held_entry *e)
{
	e->state = ENTRY_LAUNCHES;
	e->h->launching++;
	if (state_of(e) == RECORD_SUBMITTING)
		return launch(e);
	return records_commit(e->r, &(struct record_change){.state = RECORD_SUBMITTING},
			      on_committed, e);
}

/* --- the next step of an entry --- */

static bool is_whole(const struct held *h)
{
	struct backend *b = h->b;

	return !b->ops->is_whole || b->ops->is_whole(b);
}

/*
 * Look up the jobs for which E waits, because they may have ended or been removed before E existed.
 * Call this until the store has all jobs (WHOLE). held_changed handles later changes.
 */
static void look_up(struct held_entry *e, bool whole)
{
	for (size_t i = 0; i < e->rec->n_after; i++) {
		struct spec_held_after *a = &e->rec->after[i];
		const struct spec_job *job cleanup_job = store_get_uid(e->h->b->store, a->uid);

		if ((whole || (job && !job->stale_since)) && spec_held_settle(a, NULL, job))
			count_met(e, e->met + 1, e->saved);
	}
	e->unsettled = !whole;
	e->changed |= e->met != e->saved;
}

/* Like consider(), for a SUBMITTING record whose job is not in the store. */
static uint64_t consider_sent(struct held_entry *e, bool whole)
{
	const uint64_t now_ms = loop_now_ms();

	if (e->sending == SPEC_SENDING && !e->rec && e->refusal) {
		end_for(e, "LaunchFailed", e->refusal);
	} else if (e->sending == SPEC_SENDING && !e->rec) {
		end_for(e, NOT_LAUNCHED,
			"kxfs ended before it launched the job. To launch a new job, write the "
			"file again");
	} else if (e->sending == SPEC_SENDING) {
		commit(e, &(struct record_change){.state = RECORD_HELD}, NULL);
	} else if (e->sending == SPEC_SENDING_ASKED && whole && now_ms >= e->asked && !e->rec) {
		diag(DIAG_INFO,
		     "%s: the server has no such job: either the job was never launched, or it was "
		     "removed after its launch",
		     record_head(e->r)->id);
		end_for(e, NOT_LAUNCHED,
			"either the job was never launched, or it was removed after its launch. To "
			"launch a new job, write the file again");
	} else if (e->sending == SPEC_SENDING_ASKED && whole && now_ms >= e->asked) {
		e->sending = SPEC_SENDING_LOST;
		e->changed = true;
	}
	return e->sending == SPEC_SENDING_ASKED ? CLOCK_MS : 0;
}

/* Like consider(), for a HELD record. JOB is E's job if the store has it, else NULL. */
static uint64_t consider_held(struct held_entry *e, const struct spec_job *job, int64_t now,
			      bool whole)
{
	const struct held *h = e->h;
	struct spec_held *rec = e->rec;
	const bool begun = rec->begin <= now, charge = h->phase == HELD_LAUNCHES && h->b->up;
	cleanup_free char *why = NULL;
	uint64_t again = 0;

	if (e->unsettled)
		look_up(e, whole);
	e->changed |= begun != e->begun;
	e->begun = begun;
	/* The job exists, so begin_launch sends no request. It only makes the record LIVE. */
	if (job) {
		begin_launch(e);
		return 0;
	}
	switch (charge ? spec_held_judge(rec, now, &why) : SPEC_DECISION_WAIT) {
	case SPEC_DECISION_NEVER:
		end_for(e, "DependencyNeverSatisfied", why);
		return 0;
	case SPEC_DECISION_GO:
		if (h->launching >= LAUNCHES_MAX)
			break;
		begin_launch(e);
		return 0;
	case SPEC_DECISION_WAIT:
		if (e->unsettled || !begun)
			again = CLOCK_MS;
		if (!begun)
			again = min_of(again, (uint64_t)(rec->begin - now) / 1000000 + 1);
		break;
	}
	if (e->met != e->saved)
		commit(e, &(struct record_change){.state = RECORD_HELD}, NULL);
	return again;
}

/*
 * E is in RESTS. Take its next step, if it is due. Return the ms after which to call this again, or
 * 0 if E needs no timer.
 */
static uint64_t consider(struct held_entry *e, int64_t now, bool whole)
{
	const struct held *h = e->h;
	const struct spec_head *head = record_head(e->r);
	const uint64_t now_ms = loop_now_ms();
	const struct spec_job *job cleanup_job = NULL;
	uint64_t again = 0;

	if (e->next > now_ms) {
		if (e->changed)
			show(e, now);
		return e->next - now_ms;
	}
	job = job_of(e);
	switch (head->state) {
	case RECORD_HISTORY:
		retire(e);
		return 0;
	case RECORD_LIVE:
		if (!e->written)
			was_launched(e);
		else if (job && !is_local(e))
			retire(e);
		else if (job || (whole && now_ms >= e->asked))
			remove_record(e, NULL);
		return CLOCK_MS;
	case RECORD_NEVER:
		if (is_gone(e)) {
			remove_record(e, NULL);
		} else if (now - head->since > h->b->config.history_keep * NS_PER_S) {
			backend_expired(h->b, head->key);
			remove_record(e, NULL);
		}
		return CLOCK_MS;
	case RECORD_SUBMITTING:
		if (job) { /* the reply was lost */
			was_launched(e);
			return 0;
		}
		again = consider_sent(e, whole);
		break;
	default:
		again = consider_held(e, job, now, whole);
	}
	if (e->state == ENTRY_RESTS && e->changed)
		show(e, now);
	return again;
}

/* Like consider(), for a read-only mount, which launches no jobs and writes no records. */
static uint64_t consider_passive(struct held_entry *e, int64_t now, bool whole)
{
	const bool begun = !e->rec || e->rec->begin <= now;

	if (e->unsettled)
		look_up(e, whole);
	if (e->changed || begun != e->begun)
		show(e, now);
	e->begun = begun;
	return begun ? CLOCK_MS
		     : min_of((uint64_t)CLOCK_MS, (uint64_t)(e->rec->begin - now) / 1000000 + 1);
}

static void look_now(void *data)
{
	struct held *h = data;
	uint64_t (*const decide)(struct held_entry *, int64_t, bool) =
		h->b->config.passive ? consider_passive : consider;
	struct held_entry *e, *next;
	const int64_t now = loop_time_ns();
	const bool whole = is_whole(h);
	uint64_t ms = 0;

	DL_FOREACH_SAFE2(h->list, e, next, next_entry) {
		uint64_t again = e->state == ENTRY_RESTS ? decide(e, now, whole) : 0;

		if (again)
			ms = ms ? min_of(ms, again) : again;
	}
	if (ms)
		consider_within(h, ms);
}

void held_changed(struct held *h, const struct spec_job *old, const struct spec_job *now)
{
	bool ended = now && spec_job_has_ended(now) && !now->unexplained;
	bool before = old && spec_job_has_ended(old) && !old->unexplained;
	struct held_entry *e;

	if (!h->list || (now && (before || (!ended && !(old && old->held && !now->held)))))
		return;
	DL_FOREACH2(h->list, e, next_entry)
		for (size_t i = 0; state_of(e) == RECORD_HELD && i < e->rec->n_after; i++)
			if (spec_held_means(&e->rec->after[i], now ? now : old) &&
			    spec_held_settle(&e->rec->after[i], old, now)) {
				count_met(e, e->met + 1, e->saved);
				e->changed = true;
			}
	consider_within(h, SOON_MS);
}

/* --- submissions and dry runs (makings) --- */

struct held_making {
	struct held *h;
	struct backend_request *rq;
	struct spec_head *head;
	struct spec_held *rec;
	struct spec_job *shape;
	struct record *r;
	struct work work;
	bool left;  /* records_make has failed, but the record may reappear after a power cut */
	char *text; /* the error text of the answer */
};

static void making_free(struct held_making *m)
{
	spec_head_free(m->head);
	spec_held_free(m->rec);
	spec_job_unref(m->shape);
	free(m->text);
	free(m);
}

static void making_end(struct held_making *m, int err, const char *id, const char *text)
{
	struct backend_request *rq = m->rq;
	cleanup_free char *why = text ? text_copy(text) : NULL;

	making_free(m);
	return backend_answer(rq, err, id, why);
}

static struct held_entry *entry_new(struct held *h, struct record *r, struct spec_held *rec,
				    struct spec_job *shape)
{
	struct held_entry *e = new0(struct held_entry);

	e->h = h;
	e->r = r;
	e->rec = rec;
	e->shape = shape;
	e->begun = !rec || rec->begin <= loop_time_ns();
	e->again = backoff_begin(AGAIN_MS, AGAIN_MAX_MS);
	e->unsettled = rec && rec->n_after > 0;
	record_pin(r);
	HASH_ADD_KEYPTR(hh, h->all, record_head(r)->key, strlen(record_head(r)->key), e);
	DL_APPEND2(h->list, e, prev, next_entry);
	return e;
}

static struct held_entry *find(const struct held *h, const struct record *r)
{
	struct held_entry *e;

	HASH_FIND_STR(h->all, record_head(r)->key, e);
	return e;
}

/* Return the entry of R, whose job was not held. Make the entry from TEXT if there is none yet. */
static struct held_entry *need_sent(struct held *h, struct record *r, const char *text, size_t len)
{
	struct held_entry *e = find(h, r);

	return e ? e : entry_new(h, r, NULL, spec_held_shape(text, len, h->b->config.home));
}

void held_sent(struct held *h, struct record *r, const char *text, size_t len)
{
	struct held_entry *e;

	if (is_stopping(h) || record_is_going(r) || record_head(r)->state != RECORD_SUBMITTING)
		return;
	e = need_sent(h, r, text, len);
	e->state = ENTRY_SENDS;
	show(e, loop_time_ns());
}

void held_answered(struct held *h, struct record *r, const struct held_answer *answer)
{
	const bool sent = !record_is_going(r) && record_head(r)->state == RECORD_SUBMITTING;
	struct held_entry *e = find(h, r);

	if (sent && !answer->err)
		records_note(r, &(struct record_change){.state = RECORD_LIVE}, SOON_MS);
	if (sent && answer->err && answer->err != -EINPROGRESS && answer->heard && !e)
		return records_remove(r, false, NULL, NULL);
	if (sent && answer->err && answer->text)
		e = need_sent(h, r, answer->text, answer->len);
	if (!e)
		return;
	e->sending = SPEC_SENDING;
	if (sent && answer->err == -EINPROGRESS) {
		e->sending = SPEC_SENDING_ASKED;
		e->asked = loop_now_ms() + ASKED_MS;
		show(e, loop_time_ns());
	} else if (sent && answer->err && answer->heard) {
		return remove_record(e, NULL);
	} else if (sent && answer->err) {
		text_set(&e->refusal, "%s", answer->why ? answer->why : strerror(-answer->err));
		return end_for(e, "LaunchFailed", e->refusal);
	} else if (!record_is_going(r)) {
		e->asked = loop_now_ms() + ASKED_MS;
	}
	return rest(e);
}

static void on_made(void *data, int err)
{
	struct held_making *m = data;
	struct held *h = m->h;
	const struct spec_head *head;
	struct held_entry *e;

	if (err) {
		m->text = text_print(
			"%s: kxfs can't record the job in %s/jobs: %s; %s\n", m->rq->file,
			h->b->config.state_dir, strerror(-err),
			m->left ? "kxfs could not remove the incomplete record. After the next "
				  "start of kxfs, jobs/ shows whether the job is held"
				: "nothing was launched");
		return making_end(m, m->left ? -EINPROGRESS : err, NULL, m->text);
	}
	head = record_head(m->r);
	e = entry_new(h, m->r, take_ptr(m->rec), take_ptr(m->shape));
	show(e, loop_time_ns());
	consider_within(h, 0);
	return making_end(m, 0, head->id, NULL);
}

static void on_dry_run(void *data, const struct backend_result *result)
{
	struct held_making *m = data;
	const struct backend_request *rq = m->rq;
	const struct record_rest rest = {rq->text, rq->len, result->manifest,
					 strlen(result->manifest)};
	struct spec_head *head = m->head;
	struct held *h = m->h;
	const struct spec_job *other cleanup_job = NULL;

	if (result->err)
		return making_end(m, result->err, NULL, result->text);
	other = store_get(h->b->store, BACKEND_JOBS, result->id);
	if (other || HASH_COUNT(h->all) >= HELD_MAX) {
		m->text = other ? text_print("%s: a job named %s exists already; nothing was "
					     "launched\n",
					     head->file, result->id)
				: text_print("%s: kxfs already holds %u jobs, the maximum: "
					     "release or remove one; nothing was launched\n",
					     head->file, HELD_MAX);
		return making_end(m, other ? -EEXIST : -ENOSPC, NULL, m->text);
	}
	head->created = loop_time_ns();
	spec_set(&head->id, result->id);
	spec_set(&head->backend, result->backend);
	spec_set(&head->more->namespace, result->namespace);
	head->more->parts[RECORD_HOLD] = spec_held_part(m->rec);
	m->r = records_make(h->b->records, take_ptr(m->head), &rest, &m->left, on_made, m);
}

static bool take_job(const struct spec_job *job, struct spec_held_after *ret)
{
	spec_set(&ret->id, job->id);
	spec_set(&ret->uid, job->uid);
	spec_set(&ret->submission, job->own ? job->submission : "");
	(void)spec_held_settle(ret, NULL, job);
	return true;
}

static const struct spec_job *job_of_file(const struct held *h, const char *file)
{
	struct backend_file found;

	if (job_files_find(records_files(h->b->records), file, &found) < 0)
		return NULL;
	free(found.id);
	return store_get_uid(h->b->store, found.uuid);
}

/* See spec_held_place.find. Any thread. */
static bool find_job(void *data, const char *name, struct spec_held_after *ret)
{
	static const char *const ends[] = {"", ".yaml", ".yml", ".json"};
	const struct held *h = data;

	for (int place = BACKEND_JOBS; place <= BACKEND_HISTORY; place++) {
		const struct spec_job *job cleanup_job =
			store_get(h->b->store, (enum backend_place)place, name);

		if (job)
			return take_job(job, ret);
	}
	for (size_t i = 0; i < array_size(ends); i++) {
		cleanup_free char *file = text_print("%s%s", name, ends[i]);
		const struct spec_job *job cleanup_job = job_of_file(h, file);

		if (job)
			return take_job(job, ret);
	}
	return false;
}

/*
 * Convert a date and time of day without a time zone, which was parsed as if it were UTC. Return
 * the time that it means in the local time zone. Both times are in ns.
 */
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
	struct held_making *m = data;
	const struct backend_request *rq = m->rq;
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	const struct spec_held_place place = {.now = loop_time_ns(),
					      .local = local_moment,
					      .find = find_job,
					      .data = m->h};
	struct spec_head *head;
	struct spec_held *rec;

	m->work.err = spec_held_read(rq->text, rq->len, &place, &rec, &e);
	m->rec = rec;
	if (m->work.err) {
		m->text = spec_errors_text(&e, rq->file);
		return;
	}
	if (!rec)
		return;
	m->shape = spec_held_shape(rq->text, rq->len, m->h->b->config.home);
	m->head = head = backend_head(rq);
	head->state = RECORD_HELD;
	for (size_t i = 0; i < array_size(head->more->seed) && !m->work.err; i++)
		m->work.err = random_name(&head->more->seed[i]);
}

static void look_done(void *data)
{
	struct held_making *m = data;
	struct backend_request *rq = m->rq;
	struct backend *b = m->h->b;

	if (m->work.err)
		return making_end(m, m->work.err, NULL, m->text);
	if (!b->up)
		return making_end(m, -ENOTCONN, NULL, "kxfs is shutting down");
	if (m->rec && rq->kind == BACKEND_SUBMIT)
		return backend_pass_held(b, m->head, BACKEND_DRY_RUN, false, rq->text, rq->len,
					 on_dry_run, m);
	making_free(m);
	return backend_pass(rq);
}

/* --- requests --- */

/* Return true if RQ's job still exists. Otherwise answer RQ, and return false. */
static bool check_job(struct backend_request *rq)
{
	bool history = rq->kind == BACKEND_FORGET;
	const struct spec_job *job cleanup_job =
		store_get(rq->b->store, history ? BACKEND_HISTORY : BACKEND_JOBS, rq->id);

	if (!job) {
		backend_refuse(rq, -ENOENT, "there is no job %s in %s/", rq->id,
			       history ? "history" : "jobs");
		return false;
	}
	/* A client that opened the held job sends the submission's UUID as the uid. */
	if (!streq(job->uid, rq->uid) && job->own && streq(job->submission, rq->uid))
		text_set(&rq->uid, "%s", job->uid);
	if (!streq(job->uid, rq->uid)) {
		backend_refuse(rq, -ESTALE,
			       "another job has the name %s now; read that job's status before you "
			       "retry",
			       rq->id);
		return false;
	}
	return true;
}

/*
 * True if RQ is about a held job, or the document of RQ may have conditions. This file then answers
 * RQ, or passes it on later. If false, the caller must pass RQ on.
 */
static bool takes(struct held *h, struct backend_request *rq)
{
	const struct spec_job *job cleanup_job = NULL;
	struct held_entry *e = NULL;
	struct held_making *m;

	if (rq->kind == BACKEND_SUBMIT || rq->kind == BACKEND_DRY_RUN) {
		m = new0(struct held_making);
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
	if (!e || (!job->held && (!is_busy(e) || !e->rec)))
		return false;
	if (is_busy(e) && e->state != ENTRY_SENDS) {
		LL_APPEND(e->waiting, rq);
	} else if (rq->kind == BACKEND_FORGET) {
		remove_record(e, rq);
	} else if (rq->kind == BACKEND_CANCEL && state_of(e) == RECORD_SUBMITTING &&
		   e->sending != SPEC_SENDING_LOST) {
		backend_refuse(rq, -EAGAIN,
			       "kxfs does not know yet whether the job was launched, and has "
			       "removed nothing; try again later");
	} else if (rq->kind == BACKEND_CANCEL) {
		commit(e,
		       &(struct record_change){.state = RECORD_NEVER,
					       .reason = REMOVED,
					       .unlinked = true},
		       rq);
	} else if (rq->action == SPEC_RELEASE && state_of(e) == RECORD_SUBMITTING &&
		   e->sending == SPEC_SENDING_LOST) {
		e->sending = SPEC_SENDING_ASKED;
		show(e, loop_time_ns());
		begin_launch(e);
		backend_answer(rq, 0, NULL, NULL);
	} else if (rq->action != SPEC_RELEASE || !e->rec || !e->rec->hold) {
		backend_answer_no_effect(rq, job->phase);
	} else {
		e->rec->hold = false;
		e->changed = true;
		commit(e, &(struct record_change){.state = RECORD_HELD}, rq);
	}
	return true;
}

void held_run(void *data)
{
	struct backend_request *rq = data;
	bool is_new = rq->kind == BACKEND_SUBMIT || rq->kind == BACKEND_DRY_RUN;

	if (!rq->b->up)
		backend_refuse(rq, -ENOTCONN, "kxfs is shutting down");
	else if (rq->kind == BACKEND_SUBMIT && !rq->submission)
		backend_refuse(rq, -EIO,
			       "%s: the kernel returned no random bytes; nothing was "
			       "launched",
			       rq->file);
	else if ((is_new || check_job(rq)) && !takes(rq->b->held, rq))
		backend_pass(rq);
}

/* --- the start --- */

struct held_found {
	struct record *r;
	struct spec_held *rec;
	struct spec_job *shape;
};

struct held_load {
	struct held *h;
	struct work work;
	struct held_found *v;
	size_t n;
	loop_fn fn;
	void *data;
};

/* Make a shape (spec_held_shape) of each document. Runs on the pool. */
static void load_work(void *data)
{
	struct held_load *l = data;
	const struct backend_config *config = &l->h->b->config;

	for (size_t i = 0; i < l->n; i++) {
		cleanup_free char *text = NULL;
		size_t len = 0;

		if (record_file_read_rest(config->state_dir, record_head(l->v[i].r)->key, false,
					  &text, &len) == 0)
			l->v[i].shape = spec_held_shape(text, len, config->home);
		else
			l->v[i].shape = spec_job_new(0, 0);
	}
}

static int by_age(const struct held_entry *x, const struct held_entry *y)
{
	const struct spec_head *a = record_head(x->r), *b = record_head(y->r);

	if (a->created != b->created)
		return a->created < b->created ? -1 : 1;
	return strcmp(a->key, b->key);
}

static void take_found(struct held *h, const struct held_found *found)
{
	struct held_entry *e = entry_new(h, found->r, found->rec, found->shape);
	const struct spec_head *head = record_head(e->r);

	/*
	 * kxfs has requested no launch of a HELD job. A local job that is not in the store was not
	 * started. For any other job, the server has to show whether it was launched.
	 */
	e->sending = is_local(e) || head->state == RECORD_HELD ? SPEC_SENDING : SPEC_SENDING_ASKED;
	e->asked = loop_now_ms() + ASKED_MS;
	show(e, loop_time_ns());
}

static void load_done(void *data)
{
	struct held_load *l = data;
	struct held *h = l->h;
	const loop_fn fn = l->fn;
	void *arg = l->data;

	for (size_t i = 0; i < l->n; i++)
		take_found(h, &l->v[i]);
	DL_SORT2(h->list, by_age, prev, next_entry);
	if (!is_stopping(h))
		h->phase = h->phase == HELD_LAUNCHES ? HELD_LAUNCHES : HELD_SHOWS;
	consider_within(h, 0);
	free(l->v);
	free(l);
	return fn(arg);
}

static void find_record(void *data, struct record *r)
{
	struct held_load *l = data;
	const struct spec_head *head = record_head(r);
	const struct spec_job *job cleanup_job = store_get_uid(l->h->b->store, head->key);
	cleanup_free char *part = NULL;
	struct spec_held *rec = NULL;

	/* The store has each local job that was started, unless the user has removed it. */
	if (record_is_going(r) || head->state == RECORD_LIVE || head->state == RECORD_HISTORY ||
	    (is_local_head(head) && job))
		return;
	part = record_take_part(r, RECORD_HOLD);
	if ((head->state != RECORD_SUBMITTING || head->held) && spec_held_parse(part, &rec) < 0) {
		diag(DIAG_ERROR,
		     "%s: kxfs can't read what the job waits for, and will never launch the job; "
		     "submit its file again",
		     record_head(r)->id);
		return;
	}
	l->v = mem_more(l->v, l->n, sizeof(*l->v));
	l->v[l->n++] = (struct held_found){.r = r, .rec = rec};
}

void held_begin(struct held *h, loop_fn fn, void *data)
{
	struct held_load *l;

	if (h->phase != HELD_NEW)
		return;
	h->phase = HELD_LOADS;
	l = new0(struct held_load);
	l->h = h;
	l->fn = fn;
	l->data = data;
	l->work = (struct work){.run = load_work, .done = load_done, .group = &h->group, .data = l};
	records_each(h->b->records, find_record, l);
	work_start(&l->work, h->b->loop);
}

/* --- start and stop --- */

void held_take_charge(struct held *h)
{
	if (!is_stopping(h))
		h->phase = HELD_LAUNCHES;
	consider_within(h, 0);
}

struct held *held_new(struct backend *b)
{
	struct held *h = new0(struct held);

	h->b = b;
	records_set_part(b->records, RECORD_HOLD, hold_part, h);
	group_init(&h->group, b->loop);
	loop_timer_init(&h->timer, b->loop, look_now, h);
	return h;
}

void held_stop(struct held *h, loop_fn fn, void *data)
{
	struct held_entry *e;
	struct backend_request *rq;

	h->phase = HELD_STOPS;
	loop_timer_stop(&h->timer);
	DL_FOREACH2(h->list, e, next_entry)
		while ((rq = e->waiting)) {
			LL_DELETE(e->waiting, rq);
			backend_answer(rq, -ENOTCONN, NULL, "kxfs is shutting down");
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
