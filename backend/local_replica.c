/* SPDX-License-Identifier: MIT */
/*
 * The life of one replica: queued, started, ended, swept, gone. A new attempt never begins before
 * everything of the old one has ended: its process, what that left behind, its relay and its log.
 */
#include <errno.h>
#include <utlist.h>

#include "backend/local.h"

/* Starts in one turn of the loop: a fork takes about a millisecond. */
#define STARTS_A_TURN 16
/* A start that fails for want of descriptors, memory or processes is tried for half a minute. */
#define MAX_TRIES 10

static void queue_turn(void *data);

struct spec_role *local_replica_role(const struct local_replica *rep)
{
	return &rep->job->rec->app->roles[rep->rec->role];
}

static bool is_live(const struct local_replica *rep)
{
	return rep->step == LOCAL_RUNNING || rep->step == LOCAL_LEAVING;
}

static void set_live(struct local_replica *rep, enum local_step step)
{
	if (!is_live(rep)) {
		rep->job->live++;
		rep->job->roles[rep->rec->role].live++;
	}
	rep->step = step;
}

static void cancel_timer(struct local_replica *rep)
{
	loop_timer_free(take_ptr(rep->timer));
}

static void queue_post(struct local *l)
{
	if (l->spawning || !l->queue)
		return;
	l->spawning = true;
	loop_post(l->b->loop, queue_turn, l);
}

static void enqueue(void *data)
{
	struct local_replica *rep = data;
	struct local *l = rep->job->l;

	cancel_timer(rep);
	rep->step = LOCAL_QUEUED;
	DL_APPEND(l->queue, rep);
	queue_post(l);
}

void local_replica_begin(struct local_replica *rep, unsigned delay_ms)
{
	rep->again = false;
	rep->told = false;
	if (delay_ms > 0)
		rep->timer = loop_timer_new(rep->job->l->b->loop, delay_ms, 0, enqueue, rep);
	if (rep->timer)
		rep->step = LOCAL_DELAYED;
	else
		enqueue(rep);
}

void local_replica_release(struct local_replica *rep)
{
	if (rep->step == LOCAL_HELD)
		enqueue(rep);
}

/* What was planned is off. Nothing of REP is live. */
static void unplan(struct local_replica *rep)
{
	cancel_timer(rep);
	if (rep->step == LOCAL_QUEUED)
		DL_DELETE(rep->job->l->queue, rep);
	rep->step = LOCAL_IDLE;
}

/* --- starting --- */

static int log_begin(struct local_replica *rep, int *ret_fd)
{
	const struct local_job *job = rep->job;
	cleanup_free char *key = spec_record_log_key(job->rec, rep->rec, rep->rec->attempt);
	cleanup_free char *prefix = spec_record_log_prefix(job->rec, rep->rec);
	int err;

	if (!key || !prefix)
		return -ENOMEM;
	err = spool_log_begin(job->spool, key, prefix, ret_fd);
	if (err == 0)
		rep->begun = true;
	return err;
}

void local_replica_open_log(struct local_replica *rep)
{
	int err = rep->begun ? 0 : log_begin(rep, NULL);

	/* Starting it tries again and says so. */
	if (err < 0)
		diag(DIAG_DEBUG, "%s: a log can't be made yet: %s", rep->job->rec->id,
		     strerror(-err));
}

static bool passes(int err)
{
	return err == -EAGAIN || err == -ENOMEM || err == -EMFILE || err == -ENFILE;
}

static void log_ended(void *data);

/* No byte will be written to the attempt's log; then it is gone. */
void local_replica_drained(struct local_replica *rep)
{
	cleanup_free char *key = NULL;

	if (rep->begun)
		key = spec_record_log_key(rep->job->rec, rep->rec, rep->rec->attempt);
	if (key)
		spool_log_end(rep->job->spool, key, log_ended, rep);
	else
		loop_post(rep->job->l->b->loop, log_ended, rep);
}

static void failed(struct local_replica *rep);

/* The attempt can't be started at all: it counts as one that has failed. */
static void start_failed(struct local_replica *rep, const char *text)
{
	atomic_fetch_add(&rep->job->l->n_not_started, 1);
	rep->rec->exit_code = 128;
	local_say(&rep->rec->reason, "StartError");
	local_say(&rep->rec->message, "%s", text);
	rep->used = true;
	set_live(rep, LOCAL_LEAVING);
	failed(rep);
	local_replica_drained(rep);
}

static void started(struct local_replica *rep)
{
	struct local_job *job = rep->job;
	struct spec_record_replica *rec = rep->rec;

	atomic_fetch_add(&job->l->n_started, 1);
	set_live(rep, LOCAL_RUNNING);
	rep->used = true;
	rep->tries = 0;
	rec->state = SPEC_RUNNING;
	rec->started = loop_time_ns();
	local_say(&rec->reason, "%s", "");
	local_say(&rec->message, "%s", "");
	job->started = true;
	job->restarting = false;
	if (!job->rec->started)
		job->rec->started = rec->started;
}

/* A new attempt of a replica that has had one. */
static void renew(struct local_replica *rep)
{
	rep->rec->attempt++;
	rep->rec->exit_code = -1;
	rep->rec->signal = 0;
	rep->rec->started = 0;
	rep->rec->finished = 0;
	rep->begun = false;
	rep->used = false;
	rep->tries = 0;
	free(take_ptr(rep->lost));
}

static void start(struct local_replica *rep)
{
	struct local_job *job = rep->job;
	cleanup_free char *text = NULL;
	cleanup_fd int fd = -1, out = -1;
	bool first = rep->rec->attempt == 0 && !rep->used && rep->tries == 0;
	int err;

	rep->step = LOCAL_IDLE;
	if (rep->used)
		renew(rep);
	err = log_begin(rep, &fd);
	if (err == 0)
		err = local_relay_start(rep, fd, &out, &text);
	if (err == 0)
		err = local_process_start(rep, out, &text);
	if (err < 0)
		local_relay_drop(rep);
	if (first)
		job->to_start--;
	if (err == 0) {
		started(rep);
	} else if (passes(err) && ++rep->tries < MAX_TRIES) {
		local_say(&rep->rec->reason, "StartDelayed");
		local_say(&rep->rec->message, "%s", text ? text : strerror(-err));
		local_replica_begin(rep, min_of(LOCAL_DELAY_MIN_MS << (rep->tries - 1),
						LOCAL_DELAY_MAX_MS));
	} else {
		start_failed(rep, text ? text : strerror(-err));
	}
	local_job_touch(job);
}

/* Start what is queued, in batches: the loop has other things to do. */
static void queue_turn(void *data)
{
	struct local *l = data;

	l->spawning = false;
	for (int i = 0; i < STARTS_A_TURN && l->queue; i++) {
		struct local_replica *rep = l->queue;

		DL_DELETE(l->queue, rep);
		if (rep->job->rec->suspended)
			rep->step = LOCAL_HELD;
		else
			start(rep);
	}
	queue_post(l);
}

/* --- ending --- */

static void grace_over(void *data)
{
	struct local_replica *rep = data;

	cancel_timer(rep);
	local_replica_kill(rep);
}

void local_replica_kill(struct local_replica *rep)
{
	if (rep->step == LOCAL_RUNNING)
		local_process_signal(rep, SIGKILL);
}

static void terminate(struct local_replica *rep)
{
	struct local *l = rep->job->l;

	if (rep->told)
		return;
	rep->told = true;
	local_process_signal(rep, SIGTERM);
	local_process_signal(rep, SIGCONT); /* a stopped process does not see SIGTERM */
	rep->timer = loop_timer_new(l->b->loop, l->b->config.grace_ms, 0, grace_over, rep);
	if (!rep->timer)
		local_replica_kill(rep);
}

void local_replica_again(struct local_replica *rep)
{
	rep->again = true;
	if (rep->step == LOCAL_RUNNING)
		terminate(rep);
	else if (rep->step != LOCAL_LEAVING)
		unplan(rep);
	if (rep->step != LOCAL_RUNNING) {
		rep->rec->state = SPEC_PENDING;
		rep->rec->finished = 0;
	}
}

static void cancelled(struct local_replica *rep)
{
	rep->rec->state = SPEC_CANCELLED;
	rep->rec->finished = loop_time_ns();
	local_say(&rep->rec->reason, "Cancelled");
	rep->again = false;
}

void local_replica_end(struct local_replica *rep)
{
	if (rep->step == LOCAL_RUNNING) {
		terminate(rep);
		return;
	}
	if (rep->step != LOCAL_LEAVING)
		unplan(rep);
	if (!spec_state_is_final(rep->rec->state))
		cancelled(rep);
}

/* --- ended --- */

/* The attempt has ended, and not as it should. */
static void failed(struct local_replica *rep)
{
	if (rep->job->goal != LOCAL_RUN)
		cancelled(rep);
	else if (!rep->again)
		local_retry(rep);
}

void local_replica_exited(struct local_replica *rep, int status, int sig)
{
	struct spec_record_replica *rec = rep->rec;

	cancel_timer(rep);
	set_live(rep, LOCAL_LEAVING);
	rec->exit_code = sig ? -1 : status;
	rec->signal = sig;
	if (rep->job->goal == LOCAL_RUN && !rep->again && status == 0 && sig == 0) {
		rec->state = SPEC_SUCCEEDED;
		rec->finished = loop_time_ns();
		local_say(&rec->reason, "Completed");
		local_replica_say(rep);
	} else {
		local_say(&rec->reason, "%s", rep->again ? "Restarting" : sig ? "Signal" : "Error");
		local_replica_say(rep);
		if (rep->again)
			rec->state = SPEC_PENDING;
		failed(rep);
	}
	local_scan_sweep(rep);
	local_job_touch(rep->job);
}

void local_replica_swept(struct local_replica *rep)
{
	local_relay_end(rep);
}

static void log_ended(void *data)
{
	struct local_replica *rep = data;
	struct local_job *job = rep->job;

	/* Not before: who finds the record after a crash knows by the pid that the log may grow. */
	rep->rec->pid = 0;
	rep->rec->pid_start = 0;
	rep->step = LOCAL_IDLE;
	job->live--;
	job->roles[rep->rec->role].live--;
	local_job_next(job, rep);
}

void local_replica_free(struct local_replica *rep)
{
	cancel_timer(rep);
	if (rep->step == LOCAL_QUEUED)
		DL_DELETE(rep->job->l->queue, rep);
	if (rep->child)
		rep->child->rep = NULL;
	local_relay_drop(rep);
	free(rep->lost);
}
