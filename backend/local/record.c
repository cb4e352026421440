/* SPDX-License-Identifier: MIT */
/*
 * Writes and publishes the record of a local job; see record.h.
 *
 *	view      | what the store shows | what ends it                               | next
 *	HIDDEN    | no job               | one of the reasons below                   | SHOWN
 *	SHOWN     | the job              | a suspension is on disk                    | SUSPENDED
 *	SUSPENDED | a suspended job      | the end of the suspension is on disk       | SHOWN
 *
 *	file      | what is in progress        | what ends it           | next
 *	SAVED     | nothing                    | a change of the record | WRITING
 *	WRITING   | records.c writes the file  | success                | SAVED
 *	          |                            | failure                | UNSAVED
 *	UNSAVED   | records.c waits to retry   | a change of the record | WRITING
 *	          |                            | a retry succeeds       | SAVED
 *
 * Each of these reasons ends HIDDEN: kxfs has tried to start every replica; SHOW_MS have passed;
 * the job waits in the queue; kxfs ends the job, or has restarted replicas; or the mount ends.
 */
#include "backend/local/record.h"

#include "backend/base/file.h"
#include "spec/base/mem.h"

/* How long a job is hidden while kxfs starts its replicas, perhaps thousands. */
#define SHOW_MS 2000
/* Usage is published only this often, because thousands of replicas may report every second. */
#define USED_MS 1000

struct local_record {
	struct store *store;
	const struct local_record_events *events;
	void *data;
	struct spec_record *rec;
	struct record *entry;
	size_t to_try;	 /* replicas whose first start was not tried yet */
	uint64_t change; /* number of the newest change */
	uint64_t taken;	 /* number of the newest change that was passed to a write */
	uint64_t saved;	 /* number of the newest change on disk */
	enum { HIDDEN, SHOWN, SUSPENDED } view;
	enum { SAVED, WRITING, UNSAVED } file;
	bool restarting;	   /* the whole job is being restarted, and no program runs yet */
	bool last;		   /* local_record_last was called */
	struct spec_job *snapshot; /* to publish once the record is written, or NULL */
	struct loop_timer due;	   /* expires when the record must be written */
	struct loop_timer used;	   /* expires when usage must be published */
	struct loop_timer show;	   /* expires when a HIDDEN job must be shown (SHOW_MS) */
};

/* How a job ends, by its goal. NULL: the value is taken from the replica that failed. */
static const struct ending {
	enum spec_state state;
	const char *phase;
	const char *reason;
	const char *message;
} endings[] = {
	[SPEC_GOAL_RUN] = {SPEC_SUCCEEDED, "Completed", "Completed", ""},
	[SPEC_GOAL_FAIL] = {SPEC_FAILED, "Failed", NULL, NULL},
	[SPEC_GOAL_TERMINATE] = {SPEC_FAILED, "Terminated", "Terminated", "terminated through ctl"},
	[SPEC_GOAL_CANCEL] = {SPEC_CANCELLED, "Cancelled", "Cancelled",
			      "its directory was removed"},
	[SPEC_GOAL_STOP] = {SPEC_CANCELLED, "Cancelled", "Unmounted",
			    "the mount was removed while the job ran"},
};

/* --- the state --- */

static const char *phase_of(const struct local_record *r)
{
	const struct spec_job *job = r->rec->job;

	if (r->rec->goal != SPEC_GOAL_RUN)
		return "Terminating";
	if (job->suspended)
		return "Suspended";
	if (r->rec->again || r->restarting)
		return "Restarting";
	return job->started ? "Running" : "Pending";
}

uint64_t local_record_changed(struct local_record *r)
{
	struct spec_job *job = r->rec->job;

	if (!local_record_is_over(r)) {
		spec_set(&job->phase, phase_of(r));
		if (job->history)
			job->state = endings[r->rec->goal].state;
		else if (job->suspended)
			job->state = SPEC_CANCELLED;
		else if (job->started && !streq(job->phase, "Restarting"))
			job->state = SPEC_RUNNING;
		else
			job->state = SPEC_PENDING;
	}
	job->changed = loop_time_ns();
	spec_transitions_add(&job->transitions, job->state, job->phase, job->changed);
	if (r->file != WRITING)
		loop_timer_set(&r->due, 0);
	return ++r->change;
}

void local_record_set_reason(struct local_record *r, const char *reason, const char *message)
{
	spec_set(&r->rec->job->reason, reason);
	spec_set(&r->rec->job->message, message);
}

void local_record_set_goal(struct local_record *r, enum spec_goal goal)
{
	struct spec_record *rec = r->rec;

	/* Keep the first goal, so that users see the first reason. */
	if (rec->goal == SPEC_GOAL_RUN) {
		rec->goal = goal;
		if (endings[goal].reason)
			local_record_set_reason(
				r, endings[goal].reason,
				goal == SPEC_GOAL_STOP && !rec->job->started
					? "the mount was removed before the job started"
					: endings[goal].message);
	}
	rec->job->suspended = false;
	rec->again = false;
	r->restarting = false;
}

void local_record_restart(struct local_record *r)
{
	r->rec->again = true;
	r->restarting = true;
}

void local_record_tried(struct local_record *r)
{
	r->to_try--;
}

void local_record_started(struct local_record *r, int64_t time)
{
	if (!r->rec->job->started)
		r->rec->job->started = time;
}

void local_record_runs(struct local_record *r)
{
	r->restarting = false;
}

void local_record_finish(struct local_record *r)
{
	const struct ending *ending = &endings[r->rec->goal];
	struct spec_job *job = r->rec->job;

	job->state = ending->state;
	job->suspended = false;
	job->finished = loop_time_ns();
	spec_set(&job->phase, ending->phase);
	if (r->rec->goal == SPEC_GOAL_RUN)
		local_record_set_reason(r, ending->reason, ending->message);
}

bool local_record_is_over(const struct local_record *r)
{
	return r->rec->job->finished;
}

/* --- publishing and writing --- */

static bool is_shown(const struct local_record *r)
{
	return r->view != HIDDEN;
}

static bool is_suspended(const struct local_record *r)
{
	return r->view == SUSPENDED;
}

static void publish(struct local_record *r, struct spec_job *snap)
{
	cleanup_job const struct spec_job *seen = spec_job_ref(snap);

	loop_timer_stop(&r->show);
	r->view = snap->suspended ? SUSPENDED : SHOWN;
	store_put(r->store, snap);
	r->events->published(r->data, seen);
}

void local_record_publish(struct local_record *r)
{
	publish(r, spec_record_job(r->rec));
}

static bool is_moved(const struct local_record *r)
{
	return record_head(r->entry)->state == RECORD_HISTORY;
}

/* True if R can be published immediately. False if a change of R must be on disk first. */
static bool is_free(const struct local_record *r)
{
	const struct spec_job *job = r->rec->job;

	return is_shown(r) && !r->snapshot && job->suspended == is_suspended(r) &&
	       job->history == is_moved(r);
}

void local_record_moved(struct local_record *r)
{
	if (is_free(r))
		local_record_publish(r);
	else
		local_record_changed(r);
}

static void on_used(void *data)
{
	struct local_record *r = data;

	/* If R can't be published yet, its next snapshot will include this usage. */
	if (is_free(r) && !local_record_is_over(r))
		local_record_publish(r);
}

void local_record_used(struct local_record *r)
{
	if (!loop_timer_is_set(&r->used))
		loop_timer_set(&r->used, USED_MS);
}

/* True if kxfs must not show the job yet. The submitter waits until kxfs shows the job. */
static bool is_hidden(const struct local_record *r)
{
	const struct spec_job *job = r->rec->job;

	return loop_timer_is_set(&r->show) && !r->last && !*job->queue && r->to_try > 0 &&
	       r->rec->goal == SPEC_GOAL_RUN && job->retries == 0;
}

char *local_record_part(struct local_record *r, enum record_part part)
{
	r->taken = r->change;
	return (part == RECORD_PLAN ? spec_record_plan : spec_record_snapshot)(r->rec);
}

/* Return the state that R's record should have. A new record becomes LIVE before HISTORY. */
static enum record_state wanted(const struct local_record *r)
{
	return r->rec->job->history && record_head(r->entry)->state != RECORD_SUBMITTING
		       ? RECORD_HISTORY
		       : RECORD_LIVE;
}

static void write_now(void *data)
{
	struct local_record *r = data;
	const struct spec_job *job = r->rec->job;

	if (is_hidden(r))
		return;
	if ((!is_shown(r) && !job->started) || job->history || job->finished ||
	    job->suspended != is_suspended(r)) {
		spec_job_unref(r->snapshot);
		r->snapshot = spec_record_job(r->rec);
	} else {
		local_record_publish(r);
	}
	r->file = WRITING;
	records_commit(r->entry, &(struct record_change){.state = wanted(r), .over = job->finished},
		       NULL, NULL);
}

/* Show the job before all replicas are started, because a helper may hang. */
static void on_show(void *data)
{
	local_record_changed(data);
}

void local_record_written(struct local_record *r, int err)
{
	const struct spec_head *head = record_head(r->entry);
	bool behind;

	r->file = err ? UNSAVED : SAVED;
	if (err == 0)
		r->saved = r->taken;
	if (r->snapshot)
		r->snapshot->history = is_moved(r);
	r->events->written(r->data, err, r->taken);
	if (r->snapshot)
		publish(r, take_ptr(r->snapshot));
	/*
	 * records.c may have written an older state, so R may need another write after a success.
	 */
	behind = r->change > r->taken ||
		 (!err && (head->state != wanted(r) || head->over != local_record_is_over(r)));
	if (behind)
		loop_timer_set(&r->due, 0);
	else if (!err || r->last)
		return r->events->settled(r->data);
}

uint64_t local_record_saved(const struct local_record *r)
{
	return r->saved;
}

bool local_record_is_done(const struct local_record *r)
{
	return local_record_is_over(r) && r->file == SAVED;
}

void local_record_last(struct local_record *r)
{
	r->last = true;
}

/* --- creating and freeing --- */

int local_record_read_app(const char *state_dir, const char *home, struct spec_record *rec)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	int err = record_file_read_rest(state_dir, spec_job_key(rec->job), false, &text, &len);

	if (err) {
		cleanup_free char *fault = text_print("app.yaml %s", file_fault(err));

		spec_set(&rec->fault, fault);
	} else {
		spec_record_read_app(rec, text, len, home);
	}
	return err;
}

struct local_record *local_record_new(struct loop *loop, struct store *store, struct record *entry,
				      struct spec_record *rec,
				      const struct local_record_events *events, void *data)
{
	struct local_record *r = new0(struct local_record);

	r->store = store;
	r->entry = entry;
	r->events = events;
	r->data = data;
	r->rec = rec;
	r->to_try = rec->job->n_replicas;
	/* Continue the restart that an earlier daemon has begun. */
	r->restarting = streq(rec->job->phase, "Restarting");
	loop_timer_init(&r->due, loop, write_now, r);
	loop_timer_init(&r->used, loop, on_used, r);
	loop_timer_init(&r->show, loop, on_show, r);
	loop_timer_set(&r->show, SHOW_MS);
	return r;
}

void local_record_free(struct local_record *r)
{
	loop_timer_stop(&r->due);
	loop_timer_stop(&r->used);
	loop_timer_stop(&r->show);
	spec_job_unref(r->snapshot);
	spec_record_free(r->rec);
	free(r);
}

struct spec_record *local_record_spec(const struct local_record *r)
{
	return r->rec;
}

struct record *local_record_entry(const struct local_record *r)
{
	return r->entry;
}
