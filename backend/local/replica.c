/* SPDX-License-Identifier: MIT */
/*
 * The steps of a replica. A replica is "live" in the last three steps:
 *
 *	step       | what is in progress         | what ends it                  | next
 *	IDLE       | nothing                     | the job starts the replica    | DELAYED, QUEUED
 *	DELAYED    | the pause before a start    | the pause is over             | QUEUED
 *	QUEUED     | the replica waits for       | the replica may start         | STARTING
 *	           | other starts                | the attempt is not on disk    | RECORDING
 *	           |                             | the job is suspended, or      | HELD
 *	           |                             | waits for a slot              |
 *	RECORDING  | the new attempt is written  | the record is on disk         | QUEUED
 *	           | to the record               |                               |
 *	HELD       | the job is suspended, or    | the job is resumed, or gets   | QUEUED
 *	           | waits for a slot            | a slot                        |
 *	STARTING   | the helper starts the       | the program was started       | RUNNING
 *	           | program                     | a temporary shortage          | DELAYED
 *	           |                             | the program can't be started  | CONCLUDING
 *	RUNNING    | the program runs            | the helper ends               | CONCLUDING
 *	CONCLUDING | the log is merged           | the log is complete           | IDLE
 *
 * A new attempt is in the record on disk before its helper is started, and begins only when the
 * old one is no longer live. So the next daemon has to find only the newest attempt. If that
 * attempt has ended, the replica begins in CONCLUDING, to complete the merged log.
 *
 * In the merged log, lines of different attempts of a replica usually don't interleave. They may
 * interleave if kxfs can't write the lines of an earlier attempt to the merged log, and adds them
 * at the next start, while a later attempt prints.
 */
#include "backend/local/replica.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <utlist.h>

#include "backend/base/diag.h"
#include "backend/base/disk.h"
#include "backend/base/print.h"
#include "backend/base/random.h"
#include "backend/local/program.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"

/* maximum of starts on the pool at the same time; each start uses descriptors and the disk */
#define PREPARED_AT_ONCE 8
/*
 * If there is not enough memory, or there are too many processes, kxfs gives up a start after this
 * number of tries, which take about half a minute.
 */
#define MAX_TRIES 10
/* the longest pause before a restart after a failure */
#define DELAY_MAX_MS 10000u
/* After an attempt that ran for this long, the pause is the shortest one again. */
#define STEADY_MS 30000u

enum step { IDLE, DELAYED, QUEUED, RECORDING, HELD, STARTING, RUNNING, CONCLUDING };

struct local_replica {
	const struct local_replica_job *job;
	struct spec_replica *rec; /* REP's part of the snapshot in the job's record */
	struct spec_plan *plan;	  /* REP's part of the plan in the job's record */
	size_t i;
	enum step step;
	struct task *task;
	struct loop_timer delay;      /* in DELAYED: when the start is due */
	struct loop_timer grace;      /* in STARTING and RUNNING: when SIGKILL is due */
	unsigned reopened, to_reopen; /* number of earlier logs: reopened, and to reopen in total */
	uint64_t change;	      /* the attempt starts when this change is on disk */
	struct backoff slow;	      /* pauses before restarts; grow with each failed attempt */
	unsigned delay_ms;	      /* the pause before the next start */
	uint64_t since;	      /* when this daemon started the attempt, by loop_now_ms; or 0 */
	struct backoff start; /* pauses after failures to start this attempt */
	char *lost;	      /* why output of the attempt is lost, or NULL */
	bool tried;	      /* the first start was tried */
	bool begun;	      /* output_log_begin has succeeded for the attempt's log */
	bool terminated;      /* SIGTERM was sent */
	struct local_replica *prev, *next; /* the queue of starts */
};

struct local_replicas {
	struct loop *loop;
	struct tasks *tasks;
	unsigned grace_ms;
	struct local_replica *queue;
	unsigned preparing; /* number of starts on the pool */
	bool queue_posted;
	bool begun;
	/* For metrics, any thread: */
	atomic_ulong n_running, n_started, n_not_started;
};

static void enqueue(void *data);
static void reopen_next(void *data);

static struct spec_record *record_of(const struct local_replica *rep)
{
	return local_record_spec(rep->job->record);
}

static const char *id_of(const struct local_replica *rep)
{
	return record_of(rep)->job->id;
}

static char *key_of(const struct local_replica *rep)
{
	return spec_record_log_key(rep->rec, rep->rec->attempt);
}

/* Return the name of replica I's newest attempt. */
static char *task_name(const struct spec_record *rec, size_t i)
{
	return text_print("%zu.%u", i, rec->job->replicas[i].attempt);
}

char *local_replica_error_file(const struct local_replica *rep)
{
	cleanup_free char *name = task_name(record_of(rep), rep->i);

	return text_print("%s/" HELPER_DIR "/%s.error", rep->job->dir, name);
}

/* --- logs --- */

void local_replica_open_log(struct local_replica *rep)
{
	cleanup_free char *key = key_of(rep);
	cleanup_free char *prefix = spec_replica_log_prefix(rep->rec);

	rep->begun = output_log_begin(rep->job->output, key, prefix, true) == 0;
}

void local_replica_close_log(struct local_replica *rep)
{
	cleanup_free char *key = key_of(rep);

	while (rep->reopened < rep->to_reopen)
		reopen_next(rep);
	if (!rep->plan->ended && rep->begun)
		output_log_end(rep->job->output, key, NULL, NULL);
}

/* --- reasons --- */

/*
 * Add to REP's message why output was lost. Also set the reason of REP, unless REP was cancelled or
 * will be restarted.
 */
static void note_lost(struct local_replica *rep)
{
	struct spec_replica *rec = rep->rec;
	cleanup_free char *text =
		text_print("%s%s%s", rec->message, *rec->message ? "; " : "", rep->lost);

	spec_set(&rec->message, text);
	if (rec->state != SPEC_CANCELLED && !rep->plan->again)
		spec_set(&rec->reason, LOCAL_OUTPUT_LOST);
}

static void lose(struct local_replica *rep, int err)
{
	if (rep->lost)
		return;
	rep->lost = text_print("its output can't be written: %s", strerror(err));
	diag(DIAG_ERROR, "%s: %s: %s", id_of(rep), rep->rec->name, rep->lost);
}

static void note_leftovers(const struct local_replica *rep, const struct task_end *end)
{
	const char *id = id_of(rep), *name = rep->rec->name;

	if (end->late)
		diag(DIAG_WARNING,
		     "%s: %s: the program has ended, but a process outside the job still has "
		     "its output open; kxfs ignores what that process prints from now on",
		     id, name);
	if (end->left)
		diag(DIAG_WARNING,
		     "%s: %s: some processes of this replica still exist, although kxfs sent "
		     "them SIGKILL",
		     id, name);
}

/* --- steps --- */

static bool is_live(enum step step)
{
	return step >= STARTING;
}

static bool is_up(const struct local_replica *rep)
{
	return rep->step == STARTING || rep->step == RUNNING;
}

static void set_step(struct local_replica *rep, enum step step)
{
	const struct local_replica_job *job = rep->job;
	bool was_live = is_live(rep->step);

	if (step == RUNNING && rep->step != RUNNING)
		atomic_fetch_add(&job->all->n_running, 1);
	else if (step != RUNNING && rep->step == RUNNING)
		atomic_fetch_sub(&job->all->n_running, 1);
	rep->step = step;
	if (is_live(step) != was_live)
		job->events->lives(job->data, rep, is_live(step));
}

/* Cancel the planned start of REP, which must not be live. */
static void unplan(struct local_replica *rep)
{
	loop_timer_stop(&rep->delay);
	if (rep->step == QUEUED)
		DL_DELETE(rep->job->all->queue, rep);
	set_step(rep, IDLE);
}

void local_replica_begin(struct local_replica *rep)
{
	rep->plan->again = false;
	rep->terminated = false;
	if (rep->delay_ms == 0) {
		enqueue(rep);
		return;
	}
	set_step(rep, DELAYED);
	loop_timer_set(&rep->delay, rep->delay_ms);
}

/* --- starting --- */

static void mark_tried(struct local_replica *rep)
{
	if (!rep->tried)
		local_record_tried(rep->job->record);
	rep->tried = true;
}

static void post_queue(struct local_replicas *all);

static void on_prepared(void *data)
{
	const struct local_replica *rep = data;

	rep->job->all->preparing--;
	post_queue(rep->job->all);
}

static void on_started(void *data, int64_t time)
{
	struct local_replica *rep = data;
	struct spec_replica *rec = rep->rec;

	if (rep->step == STARTING)
		set_step(rep, RUNNING);
	atomic_fetch_add(&rep->job->all->n_started, 1);
	mark_tried(rep);
	backoff_reset(&rep->start);
	rec->state = SPEC_RUNNING;
	rec->started = time;
	rep->since = loop_now_ms();
	spec_set(&rec->reason, "");
	spec_set(&rec->message, "");
	local_record_started(rep->job->record, time);
	local_record_runs(rep->job->record);
	local_record_changed(rep->job->record);
}

static void on_grown(void *data)
{
	struct local_replica *rep = data;
	cleanup_free char *key = key_of(rep);

	output_log_grown(rep->job->output, key);
}

static void on_lost(void *data, int err)
{
	struct local_replica *rep = data;

	lose(rep, err);
	spec_set(&rep->rec->message, "");
	note_lost(rep);
	local_record_changed(rep->job->record);
}

static void take_usage(struct local_replica *rep, const struct task_usage *u)
{
	const struct spec_usage usage = {
		.source = SPEC_USAGE_LOCAL,
		.cpu_us = u->cpu_us,
		.cpu_now = u->cpu_now,
		.memory_now = u->memory_now,
		.memory_peak = u->memory_peak,
		.samples = u->samples,
		.first = u->first,
		.last = u->last,
	};

	spec_replica_set_usage(rep->rec, &usage);
}

static void on_used(void *data, const struct task_usage *usage)
{
	struct local_replica *rep = data;

	take_usage(rep, usage);
	local_record_used(rep->job->record);
}

static void on_ended(void *data, const struct task_end *end);

static const struct task_events task_events = {on_prepared, on_started, on_grown,
					       on_lost,	    on_used,	on_ended};

static void start_task(struct local_replica *rep)
{
	const struct spec_record *rec = record_of(rep);
	cleanup_free char *key = key_of(rep);
	cleanup_free char *name = task_name(rec, rep->i);
	cleanup_free char *error_file = local_replica_error_file(rep);
	cleanup(program_clear) struct program program = {0};
	struct task_config config;

	program_make(&program, rec, rep->rec, error_file);
	config = (struct task_config){
		.dir = rep->job->dir,
		.name = name,
		.key = key,
		.cwd = rec->work_dir,
		.limit_ms = rec->job->time_limit * INT64_C(1000),
		.grace_ms = rep->job->all->grace_ms,
		.gpus = rep->rec->gpus,
		.args = program.args,
		.env = program.env,
	};
	rep->task = task_start(rep->job->all->tasks, &config, &task_events, rep);
	rep->job->all->preparing++;
}

static void start(struct local_replica *rep)
{
	const struct task_end end = {.how = TASK_NOT_STARTED,
				     .why = rep->begun ? TASK_APP : TASK_OUTPUT,
				     .err = rep->begun ? 0 : EINVAL,
				     .exit_code = -1};

	set_step(rep, STARTING);
	if (rep->begun && record_of(rep)->app)
		return start_task(rep);
	return on_ended(rep, &end);
}

/* Make the next attempt. kxfs starts the attempt when the record on disk has it. */
static void renew(struct local_replica *rep)
{
	struct spec_replica *rec = rep->rec;

	spec_record_attempt(record_of(rep), rep->i, rec->attempt + 1);
	spec_replica_set_usage(rec, NULL);
	rep->plan->ended = false;
	rec->exit_code = -1;
	rec->signal = 0;
	rec->started = 0;
	rec->finished = 0;
	rep->since = 0;
	backoff_reset(&rep->start);
	free(take_ptr(rep->lost));
	set_step(rep, RECORDING);
	local_replica_open_log(rep);
	rep->change = local_record_changed(rep->job->record);
}

static void on_queue(void *data);

static void post_queue(struct local_replicas *all)
{
	if (!all->queue || all->queue_posted || !all->begun || all->preparing >= PREPARED_AT_ONCE)
		return;
	all->queue_posted = true;
	loop_post(all->loop, on_queue, all);
}

/* Start the first replicas of the queue. The others wait for the pool. */
static void on_queue(void *data)
{
	struct local_replicas *all = data;

	all->queue_posted = false;
	while (all->queue && all->preparing < PREPARED_AT_ONCE) {
		struct local_replica *rep = all->queue;

		DL_DELETE(all->queue, rep);
		if (record_of(rep)->job->suspended || record_of(rep)->queue_number)
			set_step(rep, HELD);
		else if (rep->plan->ended)
			renew(rep);
		else if (rep->change > local_record_saved(rep->job->record))
			set_step(rep, RECORDING);
		else
			start(rep);
	}
}

static void enqueue(void *data)
{
	struct local_replica *rep = data;
	struct local_replicas *all = rep->job->all;

	set_step(rep, QUEUED);
	DL_APPEND(all->queue, rep);
	post_queue(all);
}

/* --- ending --- */

void local_replica_signal(struct local_replica *rep, int sig)
{
	if (is_up(rep) && rep->task)
		task_signal(rep->task, sig);
}

static void on_grace_over(void *data)
{
	local_replica_signal(data, SIGKILL);
}

static void terminate(struct local_replica *rep)
{
	/* Before local_replicas_begin, kxfs only records the decision to end the program. */
	if (rep->terminated || !rep->job->all->begun)
		return;
	rep->terminated = true;
	local_replica_signal(rep, SIGTERM);
	/* a stopped process handles SIGTERM only after SIGCONT */
	local_replica_signal(rep, SIGCONT);
	loop_timer_set(&rep->grace, rep->job->all->grace_ms);
}

static void cancelled(struct local_replica *rep)
{
	rep->rec->state = SPEC_CANCELLED;
	spec_set(&rep->rec->reason, "Cancelled");
	rep->plan->again = false;
}

void local_replica_end(struct local_replica *rep)
{
	if (is_up(rep)) {
		terminate(rep);
		return;
	}
	if (rep->step != CONCLUDING)
		unplan(rep);
	if (spec_state_is_final(rep->rec->state))
		return;
	rep->rec->finished = loop_time_ns();
	cancelled(rep);
}

void local_replica_restart(struct local_replica *rep, unsigned delay_ms)
{
	rep->plan->again = true;
	rep->delay_ms = delay_ms;
	if (is_up(rep)) {
		terminate(rep);
		return;
	}
	if (rep->step != CONCLUDING)
		unplan(rep);
	rep->rec->state = SPEC_PENDING;
	rep->rec->finished = 0;
}

void local_replica_go_on(struct local_replica *rep)
{
	if (is_up(rep) && rep->plan->again)
		terminate(rep);
}

/* --- after the end of an attempt --- */

static void on_log_ended(void *data)
{
	struct local_replica *rep = data;

	set_step(rep, IDLE);
	return rep->job->events->idle(rep->job->data, rep);
}

/*
 * If the start has failed because of a temporary shortage, retry it and return true. Give up after
 * MAX_TRIES. But never give up if descriptors are missing: they become free when other jobs end.
 */
static bool try_again(struct local_replica *rep, const struct task_end *end)
{
	struct spec_replica *rec = rep->rec;
	const bool many_open = end->err == EMFILE || end->err == ENFILE;
	cleanup_free char *text = NULL;

	if (!program_end_passes(end) || record_of(rep)->goal != SPEC_GOAL_RUN || rep->plan->again)
		return false;
	rep->delay_ms = backoff_next(&rep->start, 0);
	if (rep->start.failures >= MAX_TRIES && !many_open)
		return false;
	text = program_end_text(record_of(rep), rec, end);
	spec_set(&rec->reason, "StartDelayed");
	spec_set(&rec->message, text);
	set_step(rep, IDLE);
	local_replica_begin(rep);
	local_record_changed(rep->job->record);
	return true;
}

/* Set the state of REP, whose attempt has ended. */
static void judge(struct local_replica *rep, const struct task_end *end)
{
	struct spec_replica *rec = rep->rec;
	bool well = end->how == TASK_ENDED && end->sig == 0 && end->exit_code == 0 && !end->err;
	bool runs = record_of(rep)->goal == SPEC_GOAL_RUN;
	cleanup_free char *text = program_end_text(record_of(rep), rec, end);

	rep->plan->ended = true;
	if (rec->usage)
		rec->usage->cpu_now = rec->usage->memory_now = 0;
	rec->exit_code = end->how == TASK_NOT_STARTED ? 128
			 : end->how == TASK_ENDED     ? end->exit_code
						      : -1;
	rec->signal = end->how == TASK_ENDED ? end->sig : 0;
	rec->finished = end->finished ? end->finished : loop_time_ns();
	spec_set(&rec->reason, program_end_reason(rep->plan->again, end));
	spec_set(&rec->message, text);
	if (rep->plan->again && runs) {
		rec->state = SPEC_PENDING;
		rec->finished = 0;
	} else if (well && runs) {
		rec->state = SPEC_SUCCEEDED;
	}
	if (rep->lost)
		note_lost(rep);
	if (!runs) {
		cancelled(rep);
	} else if (!rep->plan->again && !well) {
		rec->state = SPEC_FAILED;
		rep->job->events->failed(rep->job->data, rep);
	}
}

/* True if reopen_next will end the log of the newest attempt, so that on_ended must not. */
static bool reopens_newest(const struct local_replica *rep)
{
	return rep->to_reopen > rep->rec->attempt;
}

static void on_ended(void *data, const struct task_end *end)
{
	struct local_replica *rep = data;
	const struct local_replica_job *job = rep->job;
	cleanup_free char *key = key_of(rep);

	rep->task = NULL;
	loop_timer_stop(&rep->grace);
	mark_tried(rep);
	if (try_again(rep, end))
		return;
	if (end->how == TASK_NOT_STARTED)
		atomic_fetch_add(&job->all->n_not_started, 1);
	if (end->lost)
		lose(rep, end->lost);
	note_leftovers(rep, end);
	set_step(rep, CONCLUDING);
	if (end->started) {
		rep->rec->started = end->started;
		local_record_started(job->record, end->started);
	}
	judge(rep, end);
	local_record_changed(job->record);
	if (!rep->begun)
		return on_log_ended(rep);
	if (!reopens_newest(rep))
		output_log_end(job->output, key, on_log_ended, rep);
}

/* --- calls by the job --- */

unsigned local_replica_slow_down(struct local_replica *rep)
{
	uint64_t ran = rep->since ? loop_now_ms() - rep->since : 0;

	if (ran >= STEADY_MS)
		backoff_reset(&rep->slow);
	return backoff_next(&rep->slow, 0);
}

void local_replica_resume(struct local_replica *rep)
{
	local_replica_signal(rep, SIGCONT);
	if (rep->step == HELD)
		enqueue(rep);
}

void local_replica_admit(struct local_replica *rep, uint64_t change)
{
	rep->change = change;
	if (rep->step == HELD)
		enqueue(rep);
}

void local_replica_let_go(struct local_replica *rep)
{
	task_release(take_ptr(rep->task));
	loop_timer_stop(&rep->grace);
	if (!is_live(rep->step))
		unplan(rep);
}

void local_replica_recorded(struct local_replica *rep, uint64_t change)
{
	if (rep->step == RECORDING && rep->change <= change)
		enqueue(rep);
}

bool local_replica_is_delayed(struct local_replica *rep, int err)
{
	cleanup_free char *text = NULL;

	if (rep->step != RECORDING)
		return false;
	text = text_print("its state can't be recorded: %s", strerror(-err));
	spec_set(&rep->rec->reason, "StartDelayed");
	spec_set(&rep->rec->message, text);
	return true;
}

bool local_replica_is_idle(const struct local_replica *rep)
{
	return rep->step == IDLE;
}

const struct spec_replica *local_replica_record(const struct local_replica *rep)
{
	return rep->rec;
}

/* --- an attempt of an earlier daemon --- */

/* True if the newest attempt of replica I may have run when the last daemon ended. */
static bool is_open(const struct spec_record *rec, size_t i)
{
	return !rec->plans[i].ended && !spec_state_is_final(rec->job->replicas[i].state);
}

/* Return 1 if the newest attempt of replica I has output, 0 if not, or a negative errno. */
static int has_printed(const char *dir, const struct spec_record *rec, size_t i)
{
	cleanup_free char *key =
		spec_record_log_key(&rec->job->replicas[i], rec->job->replicas[i].attempt);
	cleanup_free char *path = text_print("%s/logs/%s", dir, key);
	struct stat st;
	int err = disk_stat(AT_FDCWD, path, &st);

	return err == -ENOENT ? 0 : err ? err : st.st_size > 0;
}

void local_replica_find_attempt(struct tasks *tasks, const char *dir, const struct spec_record *rec,
				size_t i, struct task_found *ret)
{
	cleanup_free char *name = task_name(rec, i);
	int printed;

	ret->fd = -1;
	if (!is_open(rec, i))
		return;
	task_find(tasks, dir, name, ret);
	/* After a power cut, the helper's files may be missing or old. Output proves a start. */
	if (ret->state != TASK_NONE &&
	    !(ret->state == TASK_OVER && ret->end.how == TASK_NOT_STARTED))
		return;
	printed = has_printed(dir, rec, i);
	if (printed > 0)
		ret->state = TASK_DROPPED;
	else if (printed < 0)
		*ret = (struct task_found){.fd = -1, .state = TASK_UNKNOWN, .err = printed};
}

/* Reopen the log of attempt A of an earlier daemon. Return false if its name is invalid. */
static bool reopen_log(struct local_replica *rep, unsigned a)
{
	cleanup_free char *prefix = spec_replica_log_prefix(rep->rec);
	cleanup_free char *key = spec_record_log_key(rep->rec, a);

	return output_log_begin(rep->job->output, key, prefix, false) == 0;
}

/*
 * Reopen and end the log of the next attempt, so that the merged log gets its missing lines. Reopen
 * the logs one after another: attempts must not interleave, and there may be ten thousand.
 */
static void reopen_next(void *data)
{
	struct local_replica *rep = data;
	unsigned a = rep->reopened;
	cleanup_free char *key = NULL;

	if (a == rep->to_reopen)
		return;
	rep->reopened++;
	key = spec_record_log_key(rep->rec, a);
	if (reopen_log(rep, a))
		output_log_end(rep->job->output, key,
			       a == rep->rec->attempt ? on_log_ended : reopen_next, rep);
}

/*
 * Reopen the logs of all attempts. Usually the merged log lacks only lines of the newest attempt.
 * It may lack others, because they could not be written, or a power cut has shortened the merged
 * log. If the newest attempt is OVER, reopen its log last. Otherwise its program may print, so
 * reopen its log now.
 */
static void reopen_logs(struct local_replica *rep, bool over)
{
	cleanup_free char *key = key_of(rep);

	/* If this key is valid, those of older attempts are valid, too. */
	rep->begun = spec_name_is_file(key);
	if (!rep->begun)
		return;
	rep->to_reopen = rep->rec->attempt + over;
	reopen_next(rep);
	if (!over)
		reopen_log(rep, rep->rec->attempt);
	else if (rep->plan->ended)
		set_step(rep, CONCLUDING);
}

/* True if the newest attempt is over, and its program may have printed. */
static bool is_over(const struct local_replica *rep, const struct task_found *found)
{
	return rep->plan->ended ||
	       (is_open(record_of(rep), rep->i) &&
		(found->state == TASK_DROPPED ||
		 (found->state == TASK_OVER && found->end.how != TASK_NOT_STARTED)));
}

void local_replica_adopt(struct local_replica *rep, const struct task_found *found)
{
	cleanup_free char *name = task_name(record_of(rep), rep->i);

	rep->tried = true;
	reopen_logs(rep, is_over(rep, found));
	if (!is_open(record_of(rep), rep->i) ||
	    (found->state == TASK_NONE && rep->rec->state != SPEC_RUNNING))
		return;
	set_step(rep, STARTING);
	if (found->state != TASK_RUNS && found->state != TASK_UNKNOWN)
		return;
	rep->task =
		task_adopt(rep->job->all->tasks, rep->job->dir, name, found->fd, &task_events, rep);
	/* The last daemon may have written the record, but not sent the signal. */
	task_signal(rep->task, record_of(rep)->job->suspended ? SIGSTOP : SIGCONT);
}

void local_replica_adopted(struct local_replica *rep, const struct task_found *found)
{
	const struct task_end dropped = {.how = TASK_KILLED, .exit_code = -1};

	if (rep->step != STARTING || rep->task)
		return;
	if (found->state == TASK_OVER && found->usage.last)
		take_usage(rep, &found->usage);
	on_ended(rep, found->state == TASK_OVER ? &found->end : &dropped);
}

/* --- creating and freeing --- */

struct local_replica *local_replica_new(const struct local_replica_job *job, size_t i)
{
	const struct spec_record *rec = local_record_spec(job->record);
	struct local_replica *rep = new0(struct local_replica);

	rep->slow = rep->start = backoff_begin(LOCAL_DELAY_MIN_MS, DELAY_MAX_MS);
	rep->job = job;
	rep->i = i;
	rep->rec = &rec->job->replicas[i];
	rep->plan = &rec->plans[i];
	loop_timer_init(&rep->delay, job->all->loop, enqueue, rep);
	loop_timer_init(&rep->grace, job->all->loop, on_grace_over, rep);
	return rep;
}

void local_replica_free(struct local_replica *rep)
{
	loop_timer_stop(&rep->delay);
	loop_timer_stop(&rep->grace);
	if (rep->step == QUEUED)
		DL_DELETE(rep->job->all->queue, rep);
	task_release(rep->task);
	free(rep->lost);
	free(rep);
}

struct local_replicas *local_replicas_new(struct loop *loop, struct tasks *tasks, unsigned grace_ms)
{
	struct local_replicas *all = new0(struct local_replicas);

	all->loop = loop;
	all->tasks = tasks;
	all->grace_ms = grace_ms;
	return all;
}

void local_replicas_free(struct local_replicas *all)
{
	free(all);
}

void local_replicas_begin(struct local_replicas *all)
{
	all->begun = true;
	post_queue(all);
}

void local_replicas_metrics(struct local_replicas *all, FILE *out)
{
	const struct print_metric metrics[] = {
		{"local_processes", "gauge", "Replicas whose process is running",
		 atomic_load(&all->n_running)},
		{"local_starts_total", "counter", "Processes started",
		 atomic_load(&all->n_started)},
		{"local_start_failures_total", "counter", "Attempts that could not be started",
		 atomic_load(&all->n_not_started)},
	};

	print_metrics(out, metrics, array_size(metrics));
}
