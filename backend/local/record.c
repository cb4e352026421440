/* SPDX-License-Identifier: MIT */
/* The record of a job that changes; see record.h. How it stands on disk is the business of record_file.h. */
#include "backend/local/record.h"

#include "backend/base/diag.h"
#include "backend/local/record_file.h"
#include "spec/base/mem.h"

/* How long a job may be hidden while its replicas are started, of which there may be thousands. */
#define SHOW_MS 2000
/* How long figures of usage are collected, which thousands of replicas may tell every second. */
#define USED_MS 1000

struct local_record {
	struct store *store;
	const struct local_record_events *events;
	void *data;
	struct spec_record *rec;
	struct record_writer *writer;
	size_t to_try;	/* replicas whose start was not tried at all yet */
	uint64_t saved; /* the newest change that is on disk */
	/* All of the job is being started again, and no program runs yet. */
	bool restarting;
	uint64_t made_ms;     /* on the clock that nobody sets */
	bool shown;	      /* it has been published */
	bool shown_suspended; /* the last snapshot that was published is of a suspended job */
	bool moved;	      /* that the job is in the history is on disk */
	bool over;	      /* its final state stands in it */
	bool last;	      /* the mount ends */
	/* The record could not be written the last time, and a message has said so. */
	bool unsaved;
	struct spec_job *snapshot; /* to be published when the record is written */
	struct loop_timer used;	   /* until usage is published */
	struct loop_timer show;	   /* until the job is shown, whatever has become of its replicas */
};

/* How a job with this goal ends. A NULL: set by the replica that failed. */
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

	if (!r->over) {
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
	return record_writer_changed(r->writer);
}

void local_record_set_reason(struct local_record *r, const char *reason, const char *message)
{
	spec_set(&r->rec->job->reason, reason);
	spec_set(&r->rec->job->message, message);
}

void local_record_set_goal(struct local_record *r, enum spec_goal goal)
{
	struct spec_record *rec = r->rec;

	/* Users see the first reason that ended the job. */
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

	r->over = true;
	job->state = ending->state;
	job->suspended = false;
	job->finished = loop_time_ns();
	spec_set(&job->phase, ending->phase);
	if (r->rec->goal == SPEC_GOAL_RUN)
		local_record_set_reason(r, ending->reason, ending->message);
}

bool local_record_is_over(const struct local_record *r)
{
	return r->over;
}

/* --- publishing and writing --- */

static void publish(struct local_record *r, struct spec_job *snap)
{
	cleanup_job const struct spec_job *seen = spec_job_ref(snap);

	loop_timer_stop(&r->show);
	r->shown = true;
	r->shown_suspended = snap->suspended;
	store_put(r->store, snap);
	r->events->published(r->data, seen);
}

void local_record_publish(struct local_record *r)
{
	publish(r, spec_record_job(r->rec));
}

/* May the record be published as it is? A snapshot that waits for the disk comes first. */
static bool is_free(const struct local_record *r)
{
	const struct spec_job *job = r->rec->job;

	return r->shown && !r->snapshot && job->suspended == r->shown_suspended &&
	       job->history == r->moved;
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

	/* Another snapshot that is published has the usage, too. */
	if (is_free(r) && !r->over)
		local_record_publish(r);
}

void local_record_used(struct local_record *r)
{
	if (!loop_timer_is_set(&r->used))
		loop_timer_set(&r->used, USED_MS);
}

/*
 * Is the job not to be shown yet? It is shown when all of it was started, or after SHOW_MS, since its submitter waits
 * for that; but not while it may have to wait for its turn, or for the record of what it was given.
 */
static bool is_hidden(const struct local_record *r)
{
	const struct spec_job *job = r->rec->job;

	return !r->shown && !r->last && !*job->queue && r->to_try > 0 &&
	       r->rec->goal == SPEC_GOAL_RUN && job->retries == 0 &&
	       loop_now_ms() - r->made_ms < SHOW_MS;
}

static char *on_text(void *data, bool *ret_final)
{
	struct local_record *r = data;
	const struct spec_job *job = r->rec->job;
	char *text;

	if (is_hidden(r))
		return NULL;
	if (!r->shown && r->to_try > 0)
		r->events->showing(r->data);
	*ret_final = r->over;
	text = spec_record_text(r->rec);
	if ((!r->shown && !job->started) || job->history || r->over ||
	    job->suspended != r->shown_suspended) {
		spec_job_unref(r->snapshot);
		r->snapshot = spec_record_job(r->rec);
	} else {
		local_record_publish(r);
	}
	return text;
}

/* A helper that stands still says nothing for long, and nothing else may change meanwhile. */
static void on_show(void *data)
{
	local_record_changed(data);
}

static void on_written(void *data, int err, uint64_t change, bool pending)
{
	struct local_record *r = data;

	if (err < 0 && !r->unsaved)
		diag(DIAG_ERROR, "%s: its state can't be recorded: %s; kxfs retries until it can",
		     r->rec->job->id, strerror(-err));
	else if (err == 0 && r->unsaved)
		diag(DIAG_INFO, "%s: its state is recorded again", r->rec->job->id);
	r->unsaved = err < 0;
	if (err == 0)
		r->saved = change;
	if (r->snapshot && err == 0)
		r->moved = r->snapshot->history;
	else if (r->snapshot)
		r->snapshot->history = r->moved;
	r->events->written(r->data, err, change);
	if (r->snapshot)
		publish(r, take_ptr(r->snapshot));
	if (!pending)
		return r->events->settled(r->data);
}

uint64_t local_record_saved(const struct local_record *r)
{
	return r->saved;
}

bool local_record_is_done(const struct local_record *r)
{
	return r->over && !r->unsaved;
}

void local_record_last(struct local_record *r)
{
	r->last = true;
	record_writer_last(r->writer);
}

/* --- making --- */

struct local_record *local_record_new(struct loop *loop, struct store *store, const char *dir,
				      struct spec_record *rec,
				      const struct local_record_events *events, void *data)
{
	static const struct record_writer_events writer_events = {on_text, on_written};
	struct local_record *r = new0(struct local_record);

	r->store = store;
	r->events = events;
	r->data = data;
	r->rec = rec;
	r->made_ms = loop_now_ms();
	r->to_try = rec->job->n_replicas;
	/* A job of an earlier daemon that was being started again still is. */
	r->restarting = streq(rec->job->phase, "Restarting");
	r->moved = rec->job->history;
	loop_timer_init(&r->used, loop, on_used, r);
	loop_timer_init(&r->show, loop, on_show, r);
	if (is_hidden(r))
		loop_timer_set(&r->show, SHOW_MS);
	r->writer = record_writer_new(loop, dir, &writer_events, r);
	return r;
}

void local_record_free(struct local_record *r)
{
	loop_timer_stop(&r->used);
	loop_timer_stop(&r->show);
	record_writer_free(r->writer);
	spec_job_unref(r->snapshot);
	spec_record_free(r->rec);
	free(r);
}

struct spec_record *local_record_spec(const struct local_record *r)
{
	return r->rec;
}
