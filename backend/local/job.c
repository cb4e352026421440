/* SPDX-License-Identifier: MIT */
/*
 * A local job and its replicas. Each replica is in one of these steps:
 *
 *	step	    what is under way		    what ends it	    next
 *	IDLE	    nothing			    its job wants it	    DELAYED or QUEUED
 *	DELAYED	    the pause before a start	    the timer		    QUEUED
 *	QUEUED	    it stands in the queue	    its place comes	    STARTING; RECORDING for a new
 *								    attempt; HELD if suspended
 *	RECORDING   a new attempt goes on record    the record is written   QUEUED
 *	HELD	    its job is suspended	    the job goes on	    QUEUED
 *	STARTING    its helper starts the program   the helper's word	    RUNNING or CONCLUDING
 *	RUNNING	    the program runs		    the helper's end	    CONCLUDING
 *	CONCLUDING  its log goes into the merged    the log has ended	    IDLE, and the job decides
 *		    log
 *
 * The last three are "live". A new attempt begins only when the old one is not live any more, and is on record before
 * its helper is started: so the next daemon after a crash has to ask for the newest attempt on record alone.
 *
 * The state of a job is made from its replicas and its goal: it is over when no replica is live, and either all have
 * succeeded or the goal is not to run. A state that users rely on (a final one, suspended, or the move to history) is
 * published only after the record is written, so that a crash never takes back what somebody has seen; any other is
 * published at once. When the disk takes nothing more, the state is published all the same, and writing the record is
 * tried again.
 *
 * This file is one automaton, and longer than others for that.
 */
#include "backend/local/job.h"

#include <errno.h>
#include <signal.h>
#include <uthash.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/print.h"
#include "backend/local/outcome.h"
#include "backend/local/program.h"
#include "backend/local/record_file.h"
#include "spec/base/mem.h"

/* Starts in one turn of the loop: a fork takes about a millisecond. */
#define STARTS_A_TURN 16
/* A start that fails for want of descriptors, memory or processes is tried for half a minute. */
#define MAX_TRIES 10
/* Before the first retry, and at most. */
#define DELAY_MIN_MS 100u
#define DELAY_MAX_MS 10000u
/* An attempt that ran this long is no reason to wait before the next. */
#define STEADY_NS (30 * INT64_C(1000000000))
/* A job of thousands of replicas is shown before all are started. */
#define SHOW_NS (2 * INT64_C(1000000000))

#define OUTPUT_LOST "OutputLost"

enum step { IDLE, DELAYED, QUEUED, RECORDING, HELD, STARTING, RUNNING, CONCLUDING };

struct replica {
	struct local_job *job;
	struct spec_record_replica *rec;
	enum step step;
	struct task *task;
	struct loop_timer *timer; /* RUNNING: until SIGKILL; DELAYED: until the start */
	uint64_t change;	  /* the one that has to be on disk before the attempt is started */
	unsigned delay_ms;	  /* before the next start */
	unsigned tries;		  /* to start this attempt, in vain */
	char *lost;		  /* why output of the attempt is lost; NULL: none is */
	bool tried;		  /* it has been started, or could not be, at least once */
	bool begun;		  /* the attempt's log has begun */
	bool terminated;	  /* SIGTERM has been sent */
	struct replica *prev, *next; /* in the queue */
};

struct role {
	size_t first, n; /* its replicas */
	size_t live;
	unsigned delay_ms;
	bool again; /* all are started again when none is live */
};

struct local_job {
	struct local_jobs *jobs;
	struct spec_record *rec;
	struct record_writer *writer;
	struct output_job *output;
	char *dir;
	struct replica *reps; /* rec->n_replicas */
	struct role *roles;   /* rec->app->n_roles */
	size_t live;
	size_t to_try;	   /* replicas that have not been tried at all */
	uint64_t recorded; /* the newest change that is on disk */
	unsigned delay_ms;
	bool restarting;	   /* until a program runs again */
	bool shown;		   /* it has been published */
	bool shown_suspended;	   /* and last as a suspended one */
	bool over;		   /* its final state stands in the record */
	bool let_go;		   /* it outlives the mount */
	bool unsaved;		   /* the last write has failed, and a message has said so */
	struct spec_job *snapshot; /* to be published when it is written */
	struct replica *blamed;	   /* whose failure ended the job; NULL: none */
	UT_hash_handle hh;	   /* by rec->id */
};

struct local_jobs {
	struct backend *b;
	struct group *group;
	struct local_jobs_events events;
	struct tasks *tasks;
	struct local_job *all;
	struct replica *queue;
	bool queue_posted;
	/* for metrics, read by any thread */
	atomic_ulong n_running, n_started, n_not_started, n_restarts, n_unsaved;
};

/* How a job ends that has this goal. NULL: the replica that failed has set it. */
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
			    "the mount was taken down while the job ran"},
};

static void job_decide(struct local_job *job, struct replica *rep);
static void job_restart(struct local_job *job, unsigned delay_ms);
static void enqueue(struct replica *rep);

/* Set a text of the record. The arguments may point into the old one. */
static printf_like(2, 3) void set_text(char **field, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list args;

	va_start(args, fmt);
	text = text_vprint(fmt, args);
	va_end(args);
	spec_set(field, text);
}

static struct spec_role *role_of(const struct replica *rep)
{
	return &rep->job->rec->app->roles[rep->rec->role];
}

static struct loop *loop_of(const struct local_job *job)
{
	return job->jobs->b->loop;
}

static char *key_of(const struct replica *rep, unsigned attempt)
{
	return spec_record_log_key(rep->job->rec, rep->rec, attempt);
}

/* The name of the replica's task: short, and another for each attempt. */
static char *task_name(const struct spec_record *rec, const struct spec_record_replica *rep)
{
	return text_print("%zu.%u", (size_t)(rep - rec->replicas), rep->attempt);
}

/* --- the record and the snapshot --- */

static const char *phase_of(const struct local_job *job)
{
	if (job->rec->goal != SPEC_GOAL_RUN)
		return "Terminating";
	if (job->rec->suspended)
		return "Suspended";
	if (job->rec->again || job->restarting)
		return "Restarting";
	return job->rec->started ? "Running" : "Pending";
}

/* Something of JOB has changed: set its state and phase, have it written and published. Returns the change's number. */
static uint64_t touch(struct local_job *job)
{
	struct spec_record *rec = job->rec;

	if (!job->over) {
		set_text(&rec->phase, "%s", phase_of(job));
		if (rec->history)
			rec->state = endings[rec->goal].state;
		else if (rec->suspended)
			rec->state = SPEC_CANCELLED;
		else
			rec->state = rec->started ? SPEC_RUNNING : SPEC_PENDING;
	}
	rec->changed = loop_time_ns();
	spec_transitions_add(&rec->transitions, rec->state, rec->phase, rec->changed);
	return record_writer_changed(job->writer);
}

static void publish(struct local_job *job, struct spec_job *snap)
{
	struct local_jobs *jobs = job->jobs;
	cleanup_job const struct spec_job *seen = spec_job_ref(snap);

	job->shown = true;
	job->shown_suspended = snap->suspended;
	store_put(jobs->b->store, snap);
	jobs->events.published(jobs->events.data, job, seen);
}

/* A job is shown when all of it has been started, or after SHOW_NS, since its submitter waits for that. */
static bool is_hidden(const struct local_job *job)
{
	return !job->shown && !job->let_go && job->to_try > 0 && job->rec->goal == SPEC_GOAL_RUN &&
	       job->rec->retries == 0 && loop_time_ns() - job->rec->created < SHOW_NS;
}

static int log_begin(struct replica *rep)
{
	cleanup_free char *key = key_of(rep, rep->rec->attempt);
	cleanup_free char *prefix = spec_record_log_prefix(rep->job->rec, rep->rec);
	int err = rep->begun ? 0 : output_log_begin(rep->job->output, key, prefix);

	if (err == 0)
		rep->begun = true;
	return err;
}

/* Make the log of REP, empty, before the program is started. */
static void open_log(struct replica *rep)
{
	int err = log_begin(rep);

	/* Starting the program tries again, and reports an error. */
	if (err < 0)
		diag(DIAG_DEBUG, "%s: a log can't be made yet: %s", rep->job->rec->id,
		     strerror(-err));
}

static char *on_text(void *data, bool *ret_final)
{
	struct local_job *job = data;
	char *text;
	struct spec_job *snap;

	if (is_hidden(job))
		return NULL;
	/* The job is seen from now on, so all its logs must be there. */
	for (size_t i = 0; i < job->rec->n_replicas && !job->shown && job->to_try > 0; i++)
		open_log(&job->reps[i]);
	*ret_final = job->over;
	text = spec_record_text(job->rec);
	snap = spec_record_job(job->rec);
	if (!text || !snap)
		mem_out();
	if (job->rec->history || job->over || job->rec->suspended != job->shown_suspended) {
		spec_job_unref(job->snapshot);
		job->snapshot = snap;
	} else {
		publish(job, snap);
	}
	return text;
}

static void job_free(struct local_job *job)
{
	struct local_jobs *jobs = job->jobs;

	HASH_DEL(jobs->all, job);
	for (size_t i = 0; i < job->rec->n_replicas; i++) {
		struct replica *rep = &job->reps[i];

		loop_timer_free(take_ptr(rep->timer));
		if (rep->step == QUEUED)
			DL_DELETE(jobs->queue, rep);
		task_release(rep->task);
		free(rep->lost);
	}
	record_writer_free(job->writer);
	spec_job_unref(job->snapshot);
	output_job_close(job->output);
	spec_record_free(job->rec);
	free(job->dir);
	free(job->reps);
	free(job->roles);
	free(job);
	group_leave(jobs->group);
}

struct cleaning {
	struct group *group;
	char *dir;
};

static void clean_work(void *data)
{
	struct cleaning *c = data;

	task_clean(c->dir);
}

static void clean_done(void *data)
{
	struct cleaning *c = data;
	struct group *group = c->group;

	free(c->dir);
	free(c);
	group_leave(group);
}

/* Remove the files of helpers, which are no longer needed: the record has all that they say. */
static void clean(struct local_job *job)
{
	struct cleaning *c = new0(struct cleaning);

	c->group = job->jobs->group;
	c->dir = text_copy(job->dir);
	group_enter(c->group);
	loop_work(loop_of(job), clean_work, clean_done, c);
}

static void leave(struct local_job *job)
{
	struct local_jobs *jobs = job->jobs;

	if (job->over && !job->unsaved)
		clean(job);
	/* Those who wait for the job's end may remove its folder. */
	output_job_close(take_ptr(job->output));
	jobs->events.leaving(jobs->events.data, job);
	job_free(job);
	return jobs->events.left(jobs->events.data);
}

/* The record can't be written, for ERR: say so of the new attempts that wait for it. */
static void delay_recorded(struct local_job *job, int err)
{
	struct spec_job *snap;
	bool any = false;

	for (size_t i = 0; i < job->rec->n_replicas; i++) {
		if (job->reps[i].step != RECORDING)
			continue;
		any = true;
		set_text(&job->rec->replicas[i].reason, "StartDelayed");
		set_text(&job->rec->replicas[i].message, "its state can't be recorded: %s",
			 strerror(-err));
	}
	if (!any || job->rec->history)
		return;
	snap = spec_record_job(job->rec);
	if (!snap)
		mem_out();
	publish(job, snap);
}

/* CHANGE is on disk: queue the attempts that waited for that. */
static void recorded(struct local_job *job, uint64_t change)
{
	job->recorded = change;
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		if (job->reps[i].step == RECORDING && job->reps[i].change <= change)
			enqueue(&job->reps[i]);
}

static void on_written(void *data, int err, uint64_t change, bool pending)
{
	struct local_job *job = data;

	if (err < 0)
		atomic_fetch_add(&job->jobs->n_unsaved, 1);
	if (err < 0 && !job->unsaved)
		diag(DIAG_ERROR,
		     "%s: its state can't be recorded: %s; it is tried again until it can",
		     job->rec->id, strerror(-err));
	else if (err == 0 && job->unsaved)
		diag(DIAG_INFO, "%s: its state is recorded again", job->rec->id);
	job->unsaved = err < 0;
	if (err == 0)
		recorded(job, change);
	else
		delay_recorded(job, err);
	if (job->snapshot)
		publish(job, take_ptr(job->snapshot));
	if (!pending && ((job->over && job->live == 0) || job->let_go))
		leave(job);
}

static const struct record_writer_events writer_events = {on_text, on_written};

/* --- reasons --- */

/* REP has failed for good: its reason becomes that of the job. */
static void blame(struct local_job *job, struct replica *rep)
{
	job->blamed = rep;
	set_text(&job->rec->reason, "%s", rep->rec->reason);
	set_text(&job->rec->message, "%s-%u: %s", role_of(rep)->name, rep->rec->id,
		 rep->rec->message);
}

/* Output of REP is lost: that becomes its reason, unless it was cancelled or is started again. */
static void note_lost(struct replica *rep)
{
	struct spec_record_replica *rec = rep->rec;

	set_text(&rec->message, "%s%s%s", rec->message, *rec->message ? "; " : "", rep->lost);
	if (rec->state != SPEC_CANCELLED && !rec->again)
		set_text(&rec->reason, OUTPUT_LOST);
}

static void lose(struct replica *rep, int err)
{
	if (rep->lost)
		return;
	rep->lost = text_print("its output can't be written: %s", strerror(err));
	diag(DIAG_ERROR, "%s: %s-%u: %s", rep->job->rec->id, role_of(rep)->name, rep->rec->id,
	     rep->lost);
}

static void note_leftovers(const struct replica *rep, const struct task_end *end)
{
	const char *id = rep->job->rec->id, *role = role_of(rep)->name;

	if (end->late)
		diag(DIAG_WARNING,
		     "%s: %s-%u: its output is still open after its end, by a process that is not the job's; what was "
		     "printed until now is kept, nothing after it",
		     id, role, rep->rec->id);
	if (end->left)
		diag(DIAG_WARNING,
		     "%s: %s-%u: not all processes that it started are gone, though they were sent SIGKILL",
		     id, role, rep->rec->id);
}

/* --- steps of a replica --- */

static bool is_live(enum step step)
{
	return step >= STARTING;
}

/* Does its program run, or begin to? */
static bool is_up(const struct replica *rep)
{
	return rep->step == STARTING || rep->step == RUNNING;
}

static void set_step(struct replica *rep, enum step step)
{
	struct local_job *job = rep->job;
	struct role *role = &job->roles[rep->rec->role];

	if (is_live(step) && !is_live(rep->step)) {
		job->live++;
		role->live++;
	} else if (!is_live(step) && is_live(rep->step)) {
		job->live--;
		role->live--;
	}
	if (step == RUNNING && rep->step != RUNNING)
		atomic_fetch_add(&job->jobs->n_running, 1);
	else if (step != RUNNING && rep->step == RUNNING)
		atomic_fetch_sub(&job->jobs->n_running, 1);
	rep->step = step;
}

static void stop_timer(struct replica *rep)
{
	loop_timer_free(take_ptr(rep->timer));
}

/* Take REP, which is not live, out of the queue and stop its timer. */
static void unplan(struct replica *rep)
{
	stop_timer(rep);
	if (rep->step == QUEUED)
		DL_DELETE(rep->job->jobs->queue, rep);
	set_step(rep, IDLE);
}

static void on_delay_over(void *data)
{
	struct replica *rep = data;

	stop_timer(rep);
	enqueue(rep);
}

static void begin(struct replica *rep, unsigned delay_ms)
{
	rep->rec->again = false;
	rep->terminated = false;
	if (delay_ms == 0) {
		enqueue(rep);
		return;
	}
	rep->timer = loop_timer_new(loop_of(rep->job), delay_ms, 0, on_delay_over, rep);
	if (!rep->timer)
		mem_out();
	set_step(rep, DELAYED);
}

/* --- starting --- */

static void mark_tried(struct replica *rep)
{
	if (!rep->tried)
		rep->job->to_try--;
	rep->tried = true;
}

static void on_started(void *data, int64_t time)
{
	struct replica *rep = data;
	struct local_job *job = rep->job;
	struct spec_record_replica *rec = rep->rec;

	if (rep->step == STARTING)
		set_step(rep, RUNNING);
	atomic_fetch_add(&job->jobs->n_started, 1);
	mark_tried(rep);
	rep->tries = 0;
	rec->state = SPEC_RUNNING;
	rec->started = time;
	set_text(&rec->reason, "%s", "");
	set_text(&rec->message, "%s", "");
	job->restarting = false;
	if (!job->rec->started)
		job->rec->started = time;
	touch(job);
}

static void on_grown(void *data)
{
	struct replica *rep = data;
	cleanup_free char *key = key_of(rep, rep->rec->attempt);

	output_log_grown(rep->job->output, key);
}

static void on_lost(void *data, int err)
{
	struct replica *rep = data;

	lose(rep, err);
	set_text(&rep->rec->message, "%s", "");
	note_lost(rep);
	touch(rep->job);
}

static void on_ended(void *data, const struct task_end *end);

static const struct task_events task_events = {on_started, on_grown, on_lost, on_ended};

static int start_task(struct replica *rep)
{
	struct local_job *job = rep->job;
	cleanup_free char *key = key_of(rep, rep->rec->attempt);
	cleanup_free char *name = task_name(job->rec, rep->rec);
	cleanup(program_clear) struct program program = {0};
	struct task_config config;
	int err = log_begin(rep);

	if (err < 0)
		return err;
	program_make(&program, job->rec, rep->rec);
	config = (struct task_config){
		.dir = job->dir,
		.name = name,
		.key = key,
		.cwd = job->rec->work_dir,
		.args = program.args,
		.env = program.env,
	};
	return task_start(job->jobs->tasks, &config, &task_events, rep, &rep->task);
}

static void start(struct replica *rep)
{
	struct task_end end = {.how = TASK_NOT_STARTED, .why = TASK_HELPER, .exit_code = -1};
	int err;

	set_step(rep, STARTING);
	err = start_task(rep);
	if (err < 0) {
		end.err = -err;
		on_ended(rep, &end);
	}
}

/* Begin the next attempt of a replica that has had one: it goes on record before it is started. */
static void renew(struct replica *rep)
{
	struct spec_record_replica *rec = rep->rec;

	rec->attempt++;
	rec->ended = false;
	rec->exit_code = -1;
	rec->signal = 0;
	rec->started = 0;
	rec->finished = 0;
	rep->begun = false;
	rep->tries = 0;
	free(take_ptr(rep->lost));
	set_step(rep, RECORDING);
	open_log(rep);
	rep->change = touch(rep->job);
}

/* Start what is queued, in batches: the loop has other things to do. */
static void on_queue(void *data)
{
	struct local_jobs *jobs = data;

	jobs->queue_posted = false;
	for (int i = 0; i < STARTS_A_TURN && jobs->queue; i++) {
		struct replica *rep = jobs->queue;

		DL_DELETE(jobs->queue, rep);
		if (rep->job->rec->suspended)
			set_step(rep, HELD);
		else if (rep->rec->ended)
			renew(rep);
		else if (rep->change > rep->job->recorded)
			set_step(rep, RECORDING);
		else
			start(rep);
	}
	if (jobs->queue && !jobs->queue_posted) {
		jobs->queue_posted = true;
		loop_post(jobs->b->loop, on_queue, jobs);
	}
}

static void enqueue(struct replica *rep)
{
	struct local_jobs *jobs = rep->job->jobs;

	set_step(rep, QUEUED);
	DL_APPEND(jobs->queue, rep);
	if (jobs->queue_posted)
		return;
	jobs->queue_posted = true;
	loop_post(jobs->b->loop, on_queue, jobs);
}

/* --- ending --- */

static void signal_task(struct replica *rep, int sig)
{
	if (is_up(rep) && rep->task)
		task_signal(rep->task, sig);
}

static void on_grace_over(void *data)
{
	struct replica *rep = data;

	stop_timer(rep);
	signal_task(rep, SIGKILL);
}

static void terminate(struct replica *rep)
{
	struct backend *b = rep->job->jobs->b;

	if (rep->terminated)
		return;
	rep->terminated = true;
	signal_task(rep, SIGTERM);
	signal_task(rep, SIGCONT); /* a stopped process does not see SIGTERM */
	rep->timer = loop_timer_new(b->loop, b->config.grace_ms, 0, on_grace_over, rep);
	if (!rep->timer)
		mem_out();
}

static void cancelled(struct replica *rep)
{
	rep->rec->state = SPEC_CANCELLED;
	rep->rec->finished = loop_time_ns();
	set_text(&rep->rec->reason, "Cancelled");
	rep->rec->again = false;
}

/* End the program of REP, or its planned start, for good. */
static void end_replica(struct replica *rep)
{
	if (is_up(rep)) {
		terminate(rep);
		return;
	}
	if (rep->step != CONCLUDING)
		unplan(rep);
	if (!spec_state_is_final(rep->rec->state))
		cancelled(rep);
}

/* End the program of REP, to be started again when it, its role or its job is no longer live. */
static void restart_replica(struct replica *rep)
{
	rep->rec->again = true;
	if (is_up(rep)) {
		terminate(rep);
		return;
	}
	if (rep->step != CONCLUDING)
		unplan(rep);
	rep->rec->state = SPEC_PENDING;
	rep->rec->finished = 0;
}

/* --- retries: HOT_SPARE has no spares on one machine, it is REPLICA --- */

static bool is_for_one(const struct spec_role *role)
{
	return role->retry_policy == SPEC_RETRY_REPLICA ||
	       role->retry_policy == SPEC_RETRY_HOT_SPARE;
}

static void next_delay(struct replica *rep)
{
	int64_t ran = rep->rec->started ? loop_time_ns() - rep->rec->started : 0;

	if (ran >= STEADY_NS || rep->delay_ms == 0)
		rep->delay_ms = DELAY_MIN_MS;
	else
		rep->delay_ms = min_of(2 * rep->delay_ms, DELAY_MAX_MS);
}

/* Use up one restart of REP's policy. False: none is left. */
static bool take_restart(struct replica *rep)
{
	struct local_job *job = rep->job;
	const struct spec_role *role = role_of(rep);
	struct replica *first = &job->reps[job->roles[rep->rec->role].first];
	unsigned *used = is_for_one(role) ? &rep->rec->restarts : &first->rec->restarts;

	if (*used >= role->max_retries)
		return false;
	(*used)++;
	job->rec->retries++;
	atomic_fetch_add(&job->jobs->n_restarts, 1);
	return true;
}

static void restart_role(struct local_job *job, struct role *role, unsigned delay_ms)
{
	role->again = true;
	role->delay_ms = delay_ms;
	for (size_t i = role->first; i < role->first + role->n; i++)
		restart_replica(&job->reps[i]);
}

/* REP has failed, by its own fault: start again what its policy says, or give the job up. */
static void retry(struct replica *rep)
{
	struct local_job *job = rep->job;

	if (!take_restart(rep)) {
		rep->rec->state = SPEC_FAILED;
		blame(job, rep);
		local_job_end(job, SPEC_GOAL_FAIL);
		return;
	}
	rep->rec->state = SPEC_PENDING;
	rep->rec->finished = 0;
	next_delay(rep);
	switch (role_of(rep)->retry_policy) {
	case SPEC_RETRY_APPLICATION:
		job_restart(job, rep->delay_ms);
		break;
	case SPEC_RETRY_ROLE:
		restart_role(job, &job->roles[rep->rec->role], rep->delay_ms);
		break;
	case SPEC_RETRY_REPLICA:
	case SPEC_RETRY_HOT_SPARE:
		rep->rec->again = true;
		break;
	}
}

/* --- ended --- */

static void on_log_ended(void *data)
{
	struct replica *rep = data;

	set_step(rep, IDLE);
	job_decide(rep->job, rep);
}

/* Try again a start that failed for want of memory, processes or descriptors. False: it was no such failure. */
static bool try_again(struct replica *rep, const struct task_end *end)
{
	struct spec_record_replica *rec = rep->rec;
	cleanup_free char *text = NULL;

	if (!outcome_passes(end) || rep->job->rec->goal != SPEC_GOAL_RUN || rec->again ||
	    ++rep->tries >= MAX_TRIES)
		return false;
	text = outcome_text(rep->job->rec, rec, end);
	set_text(&rec->reason, "StartDelayed");
	set_text(&rec->message, "%s", text);
	set_step(rep, IDLE);
	begin(rep, min_of(DELAY_MIN_MS << (rep->tries - 1), DELAY_MAX_MS));
	touch(rep->job);
	return true;
}

/* Decide what END, the end of an attempt, means for its replica and its job. */
static void judge(struct replica *rep, const struct task_end *end)
{
	struct spec_record_replica *rec = rep->rec;
	bool well = end->how == TASK_ENDED && end->sig == 0 && end->exit_code == 0;
	bool runs = rep->job->rec->goal == SPEC_GOAL_RUN;
	cleanup_free char *text = outcome_text(rep->job->rec, rec, end);

	rec->ended = true;
	rec->exit_code = end->how == TASK_NOT_STARTED ? 128
			 : end->how == TASK_ENDED     ? end->exit_code
						      : -1;
	rec->signal = end->how == TASK_ENDED ? end->sig : 0;
	rec->finished = end->finished ? end->finished : loop_time_ns();
	set_text(&rec->reason, "%s", outcome_reason(rec, end));
	set_text(&rec->message, "%s", text);
	if (rec->again) {
		rec->state = SPEC_PENDING;
		rec->finished = 0;
	} else if (well && runs) {
		rec->state = SPEC_SUCCEEDED;
	}
	if (rep->lost)
		note_lost(rep);
	if (!runs)
		cancelled(rep);
	else if (!rec->again && !well)
		retry(rep);
}

static void on_ended(void *data, const struct task_end *end)
{
	struct replica *rep = data;
	struct local_job *job = rep->job;
	cleanup_free char *key = key_of(rep, rep->rec->attempt);

	rep->task = NULL;
	stop_timer(rep);
	mark_tried(rep);
	if (try_again(rep, end))
		return;
	if (end->how == TASK_NOT_STARTED)
		atomic_fetch_add(&job->jobs->n_not_started, 1);
	if (end->lost)
		lose(rep, end->lost);
	note_leftovers(rep, end);
	set_step(rep, CONCLUDING);
	if (end->started && !job->rec->started)
		job->rec->started = end->started;
	if (end->started)
		rep->rec->started = end->started;
	judge(rep, end);
	touch(job);
	if (!rep->begun)
		return on_log_ended(rep);
	output_log_end(job->output, key, on_log_ended, rep);
}

/* --- a job as a whole --- */

static bool all_succeeded(const struct local_job *job)
{
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		if (job->rec->replicas[i].state != SPEC_SUCCEEDED)
			return false;
	return true;
}

/* An attempt that was never started has an empty log, not none. */
static void end_unused_log(struct replica *rep)
{
	cleanup_free char *key = key_of(rep, rep->rec->attempt);

	if (rep->rec->ended)
		return;
	open_log(rep);
	if (rep->begun)
		output_log_end(rep->job->output, key, NULL, NULL);
}

/* The job is over: nothing of it runs or will run. */
static void finish(struct local_job *job)
{
	const struct ending *ending = &endings[job->rec->goal];
	struct spec_record *rec = job->rec;

	job->over = true;
	for (size_t i = 0; i < rec->n_replicas; i++)
		end_unused_log(&job->reps[i]);
	output_job_end(job->output);
	rec->state = ending->state;
	rec->suspended = false;
	rec->finished = loop_time_ns();
	set_text(&rec->phase, "%s", ending->phase);
	if (rec->goal == SPEC_GOAL_RUN) {
		set_text(&rec->reason, "%s", ending->reason);
		set_text(&rec->message, "%s", ending->message);
		for (size_t i = 0; i < rec->n_replicas && !job->blamed; i++)
			if (streq(rec->replicas[i].reason, OUTPUT_LOST))
				blame(job, &job->reps[i]);
	}
	touch(job);
}

static void begin_again(struct local_job *job, size_t first, size_t n, unsigned delay_ms)
{
	for (size_t i = first; i < first + n; i++)
		if (job->reps[i].rec->again)
			begin(&job->reps[i], delay_ms);
}

/* REP is no longer live (NULL: no replica of the job is): decide what comes next. */
static void job_decide(struct local_job *job, struct replica *rep)
{
	struct role *role = rep ? &job->roles[rep->rec->role] : NULL;

	if (job->over || job->let_go)
		return;
	if (job->rec->goal != SPEC_GOAL_RUN) {
		if (job->live == 0)
			finish(job);
	} else if (job->rec->again) {
		if (job->live > 0)
			return;
		job->rec->again = false;
		for (size_t i = 0; i < job->rec->app->n_roles; i++)
			job->roles[i].again = false;
		begin_again(job, 0, job->rec->n_replicas, job->delay_ms);
	} else if (role && role->again) {
		if (role->live > 0)
			return;
		role->again = false;
		begin_again(job, role->first, role->n, role->delay_ms);
	} else if (rep && rep->rec->again) {
		begin(rep, rep->delay_ms);
	} else if (job->live == 0 && all_succeeded(job)) {
		finish(job);
	}
}

void local_job_end(struct local_job *job, enum spec_goal goal)
{
	struct spec_record *rec = job->rec;

	/* The first reason to end the job is the one that users see. */
	if (rec->goal == SPEC_GOAL_RUN) {
		rec->goal = goal;
		if (endings[goal].reason) {
			set_text(&rec->reason, "%s", endings[goal].reason);
			set_text(&rec->message, "%s", endings[goal].message);
		}
	}
	rec->suspended = false;
	rec->again = false;
	job->restarting = false;
	for (size_t i = 0; i < rec->n_replicas; i++)
		end_replica(&job->reps[i]);
	touch(job);
	job_decide(job, NULL);
}

static void job_restart(struct local_job *job, unsigned delay_ms)
{
	job->rec->again = true;
	job->restarting = true;
	job->delay_ms = delay_ms;
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		restart_replica(&job->reps[i]);
	touch(job);
	job_decide(job, NULL);
}

void local_job_restart(struct local_job *job)
{
	/* Processes outside of the group stay stopped, and get SIGKILL when the program has ended. */
	job->rec->suspended = false;
	job_restart(job, 0);
}

void local_job_cancel(struct local_job *job)
{
	job->rec->history = true;
	if (job->over)
		touch(job);
	else
		local_job_end(job, SPEC_GOAL_CANCEL);
}

static void signal_all(struct local_job *job, int sig)
{
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		signal_task(&job->reps[i], sig);
}

void local_job_suspend(struct local_job *job)
{
	job->rec->suspended = true;
	signal_all(job, SIGSTOP);
	touch(job);
}

void local_job_resume(struct local_job *job)
{
	job->rec->suspended = false;
	signal_all(job, SIGCONT);
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		if (job->reps[i].step == HELD)
			enqueue(&job->reps[i]);
	touch(job);
}

void local_job_kill(struct local_job *job)
{
	signal_all(job, SIGKILL);
}

bool local_job_is_ending(const struct local_job *job)
{
	return job->over || job->rec->goal != SPEC_GOAL_RUN;
}

const struct spec_record *local_job_record(const struct local_job *job)
{
	return job->rec;
}

struct local_job *local_job_new(struct local_jobs *jobs, struct spec_record *rec)
{
	struct output_job *output = output_job_open(jobs->b->output, rec->id);
	struct local_job *job;

	if (!output) {
		int err = errno;

		spec_record_free(rec);
		errno = err;
		return NULL;
	}
	job = new0(struct local_job);
	job->jobs = jobs;
	job->rec = rec;
	job->output = output;
	job->dir = text_print("%s/jobs/%s", jobs->b->config.state_dir, rec->id);
	job->writer = record_writer_new(jobs->b->loop, job->dir, &writer_events, job);
	job->reps = new0_n(struct replica, rec->n_replicas);
	job->roles = new0_n(struct role, rec->app->n_roles);
	for (size_t i = 0; i < rec->n_replicas; i++) {
		struct role *role = &job->roles[rec->replicas[i].role];

		if (role->n++ == 0)
			role->first = i;
		job->reps[i] = (struct replica){.job = job, .rec = &rec->replicas[i]};
	}
	job->to_try = rec->n_replicas;
	HASH_ADD_KEYPTR(hh, jobs->all, rec->id, strlen(rec->id), job);
	group_enter(jobs->group);
	return job;
}

void local_job_launch(struct local_job *job)
{
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		begin(&job->reps[i], 0);
}

/* --- jobs of an earlier daemon --- */

/* May an attempt of REP have run when the last daemon ended? */
static bool is_open(const struct spec_record_replica *rep)
{
	return !rep->ended && !spec_state_is_final(rep->state);
}

struct task_found *local_job_look(const char *state_dir, const struct spec_record *rec)
{
	cleanup_free char *dir = text_print("%s/jobs/%s", state_dir, rec->id);
	struct task_found *found = new0_n(struct task_found, rec->n_replicas);

	for (size_t i = 0; i < rec->n_replicas; i++) {
		cleanup_free char *name = task_name(rec, &rec->replicas[i]);

		found[i].fd = -1;
		if (is_open(&rec->replicas[i]))
			task_find(dir, name, &found[i]);
	}
	return found;
}

/* Begin all logs of REP again; those of earlier attempts end at once, so that the merged log gets what it lacks. */
static void reopen_logs(struct replica *rep)
{
	cleanup_free char *prefix = spec_record_log_prefix(rep->job->rec, rep->rec);

	for (unsigned a = 0; a <= rep->rec->attempt; a++) {
		cleanup_free char *key = key_of(rep, a);
		int err = output_log_begin(rep->job->output, key, prefix);

		if (err < 0)
			diag(DIAG_ERROR, "%s: %s can't be opened: %s", rep->job->rec->id, key,
			     strerror(-err));
		else if (a < rep->rec->attempt || rep->rec->ended)
			output_log_end(rep->job->output, key, NULL, NULL);
		else
			rep->begun = true;
	}
}

static void adopt(struct replica *rep, const struct task_found *found)
{
	cleanup_free char *name = task_name(rep->job->rec, rep->rec);

	reopen_logs(rep);
	if (!is_open(rep->rec) || (found->state == TASK_NONE && rep->rec->state != SPEC_RUNNING))
		return;
	set_step(rep, STARTING);
	if (found->state != TASK_RUNS)
		return;
	if (found->started && rep->rec->state != SPEC_RUNNING) {
		rep->rec->state = SPEC_RUNNING;
		rep->rec->started = found->started;
		if (!rep->job->rec->started)
			rep->job->rec->started = found->started;
		touch(rep->job);
	}
	rep->task = task_adopt(rep->job->jobs->tasks, rep->job->dir, name, found->fd, &task_events,
			       rep);
	/* The last daemon may have ended after it wrote the record and before it sent the signal. */
	task_signal(rep->task, rep->job->rec->suspended ? SIGSTOP : SIGCONT);
}

/* Plan the starts that were planned when the last daemon ended. */
static void plan(struct local_job *job)
{
	if (job->rec->again)
		return job_restart(job, DELAY_MIN_MS);
	for (size_t i = 0; i < job->rec->n_replicas; i++) {
		struct replica *rep = &job->reps[i];
		struct role *role = &job->roles[rep->rec->role];

		if (rep->rec->again && !role->again &&
		    role_of(rep)->retry_policy == SPEC_RETRY_ROLE)
			restart_role(job, role, DELAY_MIN_MS);
		else if (rep->step == IDLE && rep->rec->state == SPEC_PENDING && !rep->rec->again)
			begin(rep, 0);
		if (rep->step == IDLE)
			job_decide(job, rep);
	}
}

void local_job_go_on(struct local_job *job, const struct task_found *found)
{
	const struct task_end dropped = {.how = TASK_KILLED, .exit_code = -1};
	struct spec_job *snap;

	job->to_try = 0;
	job->restarting = streq(job->rec->phase, "Restarting");
	for (size_t i = 0; i < job->rec->n_replicas; i++) {
		job->reps[i].tried = true;
		adopt(&job->reps[i], &found[i]);
	}
	snap = spec_record_job(job->rec);
	if (!snap)
		mem_out();
	publish(job, snap);
	if (job->rec->goal != SPEC_GOAL_RUN)
		local_job_end(job, job->rec->goal);
	else
		plan(job);
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		if (job->reps[i].step == STARTING && !job->reps[i].task)
			on_ended(&job->reps[i],
				 found[i].state == TASK_OVER ? &found[i].end : &dropped);
}

/* --- all jobs --- */

struct local_jobs *local_jobs_new(struct backend *b, struct group *group,
				  const struct local_jobs_events *events)
{
	struct local_jobs *jobs = new0(struct local_jobs);

	jobs->b = b;
	jobs->group = group;
	jobs->events = *events;
	jobs->tasks = tasks_new(b->loop, group);
	return jobs;
}

void local_jobs_free(struct local_jobs *jobs)
{
	struct local_job *job, *next;

	if (!jobs)
		return;
	HASH_ITER(hh, jobs->all, job, next)
		job_free(job);
	tasks_free(jobs->tasks);
	free(jobs);
}

/* The job outlives the mount: its programs go on, and planned starts stay on record. */
static void let_go(struct local_job *job)
{
	job->let_go = true;
	for (size_t i = 0; i < job->rec->n_replicas; i++) {
		struct replica *rep = &job->reps[i];

		task_release(take_ptr(rep->task));
		if (is_live(rep->step))
			stop_timer(rep);
		else
			unplan(rep);
	}
	touch(job);
}

void local_jobs_stop(struct local_jobs *jobs, bool linger)
{
	struct local_job *job, *next;

	HASH_ITER(hh, jobs->all, job, next) {
		record_writer_last(job->writer);
		if (job->over)
			touch(job); /* its record could not be written: try a last time */
		else if (linger && job->rec->goal == SPEC_GOAL_RUN)
			let_go(job);
		else
			local_job_end(job, SPEC_GOAL_STOP);
	}
	if (linger)
		tasks_outlive(jobs->tasks);
}

size_t local_jobs_count(const struct local_jobs *jobs)
{
	return HASH_COUNT(jobs->all);
}

struct local_job *local_jobs_find(struct local_jobs *jobs, const char *id)
{
	struct local_job *job;

	HASH_FIND_STR(jobs->all, id, job);
	return job;
}

void local_jobs_metrics(struct local_jobs *jobs, FILE *out)
{
	const struct print_metric metrics[] = {
		{"local_processes", "gauge", "Replicas whose process runs",
		 atomic_load(&jobs->n_running)},
		{"local_starts_total", "counter", "Processes started",
		 atomic_load(&jobs->n_started)},
		{"local_start_failures_total", "counter", "Attempts that could not be started",
		 atomic_load(&jobs->n_not_started)},
		{"local_restarts_total", "counter", "Restarts by a retry policy",
		 atomic_load(&jobs->n_restarts)},
		{"local_record_failures_total", "counter", "Writes of a job's record that failed",
		 atomic_load(&jobs->n_unsaved)},
	};

	print_metrics(out, metrics, array_size(metrics));
}
