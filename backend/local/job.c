/* SPDX-License-Identifier: MIT */
/*
 * One local job, and the queue of the machine. With the goal SPEC_GOAL_RUN, a job is over when all
 * replicas have succeeded and no replica is live (replica.h). With any other goal, it is over when
 * no replica is live. The job is freed when its record on disk shows that the job is over.
 *
 * The file is long because the queue, the start of a daemon, and users all change the same jobs.
 */
#include "backend/local/job.h"

#include <signal.h>
#include <uthash.h>

#include "backend/base/file.h"
#include "backend/base/print.h"
#include "backend/base/work.h"
#include "backend/jobs/last_words.h"
#include "backend/local/record.h"
#include "backend/local/replica.h"
#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "spec/record/slots.h"

struct role {
	size_t first, n; /* the role's replicas are N items of REPS, from index FIRST */
	size_t live;
	bool again; /* restart all replicas of the role when none is live */
};

struct local_job {
	struct local_jobs *jobs;
	struct local_record *record;
	const struct spec_record *rec; /* the contents of RECORD */
	struct local_replica_job common;
	struct local_replica **reps;
	struct role *roles;
	size_t live;
	bool is_new;		  /* on disk, but not launched yet */
	uint64_t ended;		  /* number of the change that ended the job, or 0 */
	bool let_go;		  /* the job outlives the mount */
	bool blamed;		  /* blame() has copied a replica's reason to the job */
	bool words_known;	  /* the last words (last_words.h) are in the record */
	struct last_words *words; /* the operation that reads the last words, or NULL */
	UT_hash_handle hh;	  /* by id */
};

struct local_jobs {
	struct backend *b;
	struct group *group;
	struct local_jobs_events events;
	struct tasks *tasks;
	struct local_replicas *replicas;
	struct local_job *all;
	struct orphan *orphans;
	bool in_charge;		  /* kxfs may start and end jobs */
	struct spec_slots limits; /* only the limits; its counts are not used */
	bool slots_posted;
	int64_t last_queue_number; /* the last number that was given to a job, or 0 */
	atomic_ullong taken;	   /* GPUs of all jobs and orphans; any thread */
	/* for metrics; any thread */
	atomic_ulong n_restarts, n_unsaved;
};

static uint64_t job_restart(struct local_job *job, unsigned delay_ms);
static void post_slots(struct local_jobs *jobs);

static struct role *role_of(const struct local_job *job, const struct local_replica *rep)
{
	return &job->roles[local_replica_record(rep)->role];
}

/* Return NULL if the AppDef can't be read. */
static const struct spec_role *spec_role_of(const struct local_job *job,
					    const struct local_replica *rep)
{
	const struct spec_app *app = job->rec->app;

	return app ? &app->roles[local_replica_record(rep)->role] : NULL;
}

/* --- the queue of the machine (spec/record/slots.h) --- */

static void line_up(struct local_job *job)
{
	struct local_jobs *jobs = job->jobs;

	/*
	 * If a damaged record has the highest possible number, give that number again. Jobs with
	 * equal numbers are ordered by creation.
	 */
	jobs->last_queue_number = min_of(jobs->last_queue_number + 1, SPEC_MAX_QUEUE_NUMBER);
	local_record_spec(job->record)->queue_number = jobs->last_queue_number;
	post_slots(job->jobs);
}

/* Add a new job to the queue, if the mount has one. */
static void join_queue(struct local_job *job)
{
	const struct spec_slots *limits = &job->jobs->limits;

	if (!limits->jobs && !limits->gpus)
		return;
	spec_set(&job->rec->job->queue, LOCAL_QUEUE);
	line_up(job);
}

/* True if JOB is not running, needs GPUs, and has none yet. */
static bool lacks_gpus(const struct local_job *job)
{
	struct spec_slots had = {0};

	spec_slots_take(&had, job->rec);
	return job->live == 0 && !had.taken && job->jobs->limits.gpus &&
	       spec_slots_need(job->rec->app) > 0;
}

/*
 * Add a job of an earlier daemon to the queue if it was not launched, or still needs GPUs. Call
 * this after all records were read, so that jobs with a queue number remain ahead of this job.
 */
static void join_late(struct local_job *job)
{
	const bool is_new = job->is_new;

	job->is_new = false;
	if (job->rec->queue_number || local_job_is_ending(job) || (!is_new && !lacks_gpus(job)))
		return;
	join_queue(job);
	if (job->rec->queue_number)
		local_record_changed(job->record);
}

static bool waits_in_queue(const struct local_job *job)
{
	return job->rec->queue_number && !job->rec->job->suspended && !job->let_go &&
	       !local_job_is_ending(job);
}

static int by_queue_number(const void *a, const void *b)
{
	const struct spec_record *x = (*(const struct local_job *const *)a)->rec;
	const struct spec_record *y = (*(const struct local_job *const *)b)->rec;

	if (x->queue_number != y->queue_number)
		return x->queue_number < y->queue_number ? -1 : 1;
	return (x->job->created > y->job->created) - (x->job->created < y->job->created);
}

/*
 * Give free slots and GPUs to waiting jobs. A job keeps its slot and its GPUs until its end is on
 * disk. Otherwise, after a crash, the next daemon could start two jobs on the same GPUs.
 */
static void on_slots(void *data)
{
	struct local_jobs *jobs = data;
	struct spec_slots slots = jobs->limits;
	struct local_job **waiting cleanup_free = new0_n(struct local_job *, HASH_COUNT(jobs->all));
	struct local_job *job, *next;
	size_t n = 0;

	jobs->slots_posted = false;
	orphans_take(jobs->orphans, &slots);
	HASH_ITER(hh, jobs->all, job, next) {
		if (!job->rec->queue_number)
			spec_slots_take(&slots, job->rec);
		else if (waits_in_queue(job))
			waiting[n++] = job;
	}
	atomic_store(&jobs->taken, slots.taken);
	qsort(waiting, n, sizeof(struct local_job *), by_queue_number);
	for (size_t i = 0; i < n; i++) {
		bool moved = false;
		uint64_t change;

		job = waiting[i];
		if (!spec_slots_give(&slots, local_record_spec(job->record), &moved)) {
			if (moved)
				local_record_moved(job->record);
			continue;
		}
		/* Record the GPUs first, so that no other job gets them after a crash. */
		change = local_record_changed(job->record);
		for (size_t k = 0; k < job->rec->job->n_replicas; k++)
			local_replica_admit(job->reps[k], change);
		atomic_store(&jobs->taken, slots.taken);
	}
}

static void post_slots(struct local_jobs *jobs)
{
	const struct spec_slots *limits = &jobs->limits;

	if (jobs->slots_posted || (!jobs->in_charge && !limits->passive) ||
	    (!jobs->last_queue_number && !limits->jobs && !limits->gpus))
		return;
	jobs->slots_posted = true;
	loop_post(jobs->b->loop, on_slots, jobs);
}

/* --- the end of a job --- */

static void job_free(struct local_job *job)
{
	struct local_jobs *jobs = job->jobs;

	HASH_DEL(jobs->all, job);
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		local_replica_free(job->reps[i]);
	last_words_drop(job->words);
	output_job_close(job->common.output);
	local_record_free(job->record);
	free(job->common.dir);
	free(job->reps);
	free(job->roles);
	free(job);
	group_leave(jobs->group);
}

/* Runs on the pool. */
static void clean_work(void *dir)
{
	task_clean(dir);
	free(dir);
}

/* --- events of the record --- */

static void on_published(void *data, const struct spec_job *snap)
{
	struct local_job *job = data;
	struct local_jobs *jobs = job->jobs;

	jobs->events.published(jobs->events.data, job, snap);
}

/* True if the disk is full, and the end of JOB must still be written. Space for it is reserved. */
static bool waits_for_room(const struct local_job *job, int err, uint64_t change)
{
	return file_is_full(err) && local_job_is_ending(job) &&
	       (!job->ended || change < job->ended);
}

static void on_written(void *data, int err, uint64_t change)
{
	struct local_job *job = data;
	bool delayed = false;

	for (size_t i = 0; i < job->rec->job->n_replicas; i++) {
		if (err == 0)
			local_replica_recorded(job->reps[i], change);
		else
			delayed |= local_replica_is_delayed(job->reps[i], err);
	}
	if (err < 0) {
		atomic_fetch_add(&job->jobs->n_unsaved, 1);
		if (!waits_for_room(job, err, change))
			job->jobs->events.unwritten(job->jobs->events.data, job, err, change);
	}
	/* Show users that new attempts wait until the record can be written. */
	if (delayed && !job->rec->job->history)
		local_record_publish(job->record);
}

static void on_settled(void *data)
{
	struct local_job *job = data;
	struct local_jobs *jobs = job->jobs;

	if (!job->let_go && (!local_record_is_over(job->record) || job->live > 0))
		return;
	/* The record has all results now, so the helpers' files are obsolete. */
	if (local_record_is_done(job->record))
		loop_work(jobs->b->loop, clean_work, NULL, take_ptr(job->common.dir));
	/* leaving() may remove the job's folder, so close the output first. */
	output_job_close(take_ptr(job->common.output));
	jobs->events.leaving(jobs->events.data, job);
	job_free(job);
	post_slots(jobs);
}

/* --- failures of replicas --- */

/* Copy the reason of REP, which has failed for good or has lost output, to JOB. */
static void blame(struct local_job *job, const struct local_replica *rep)
{
	const struct spec_replica *rec = local_replica_record(rep);
	const char *fault = job->rec->fault;
	bool known = !*fault || strstr(rec->message, fault);
	cleanup_free char *text = text_print("%s: %s%s%s", rec->name, rec->message,
					     known ? "" : "; kxfs does not restart the replica: ",
					     known ? "" : fault);

	job->blamed = true;
	local_record_set_reason(job->record, rec->reason, text);
}

/*
 * True if ROLE restarts only the failed replica. HOT_SPARE does this, too, because one machine has
 * no spares.
 */
static bool is_for_one(const struct spec_role *role)
{
	return role->retry_policy == SPEC_RETRY_REPLICA ||
	       role->retry_policy == SPEC_RETRY_HOT_SPARE;
}

/* Count a restart of REP. Return false if REP has reached its limit already. */
static bool take_restart(struct local_job *job, const struct local_replica *rep)
{
	const struct spec_role *role = spec_role_of(job, rep);
	size_t i = role_of(job, rep)->first;
	struct spec_plan *plan;

	if (!role)
		return false;
	/* REP's plan has the count if only REP restarts, else that of the role's first replica. */
	if (is_for_one(role))
		i = (size_t)(local_replica_record(rep) - job->rec->job->replicas);
	plan = &local_record_spec(job->record)->plans[i];
	if (plan->restarts >= role->max_retries)
		return false;
	plan->restarts++;
	job->rec->job->retries++;
	atomic_fetch_add(&job->jobs->n_restarts, 1);
	return true;
}

static void restart_role(struct local_job *job, struct role *role, unsigned delay_ms)
{
	role->again = true;
	for (size_t i = role->first; i < role->first + role->n; i++)
		local_replica_restart(job->reps[i], delay_ms);
}

/* Restart the replicas that the retry policy selects, or end the job if no restart is left. */
static void on_failed(void *data, struct local_replica *rep)
{
	struct local_job *job = data;
	unsigned delay_ms;

	if (!take_restart(job, rep)) {
		blame(job, rep);
		local_job_end(job, SPEC_GOAL_FAIL);
		return;
	}
	delay_ms = local_replica_slow_down(rep);
	switch (spec_role_of(job, rep)->retry_policy) {
	case SPEC_RETRY_APPLICATION:
		job_restart(job, delay_ms);
		break;
	case SPEC_RETRY_ROLE:
		restart_role(job, role_of(job, rep), delay_ms);
		break;
	case SPEC_RETRY_REPLICA:
	case SPEC_RETRY_HOT_SPARE:
		local_replica_restart(rep, delay_ms);
		break;
	}
}

/* --- a job as a whole --- */

static bool all_succeeded(const struct local_job *job)
{
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		if (job->rec->job->replicas[i].state != SPEC_SUCCEEDED)
			return false;
	return true;
}

/* Set the final state of JOB. No replica is live or will be started. */
static void finish(struct local_job *job)
{
	const struct spec_record *rec = job->rec;

	for (size_t i = 0; i < rec->job->n_replicas; i++) {
		/* Cancel a start that the last daemon had planned. */
		local_replica_end(job->reps[i]);
		local_replica_close_log(job->reps[i]);
	}
	output_job_end(job->common.output);
	local_record_finish(job->record);
	for (size_t i = 0; i < rec->job->n_replicas && !job->blamed; i++)
		if (rec->goal == SPEC_GOAL_RUN &&
		    streq(rec->job->replicas[i].reason, LOCAL_OUTPUT_LOST))
			blame(job, job->reps[i]);
	job->ended = local_record_changed(job->record);
}

static void begin_again(struct local_job *job, size_t first, size_t n)
{
	for (size_t i = first; i < first + n; i++)
		if (job->rec->plans[i].again)
			local_replica_begin(job->reps[i]);
}

static void decide(void *data, struct local_replica *rep);

static void on_words(void *data, const char *words)
{
	struct local_job *job = data;

	job->words = NULL;
	job->words_known = true;
	spec_set(&job->rec->job->last_words, words ? words : "");
	job->rec->job->silent = !words;
	return decide(job, NULL);
}

/*
 * No replica is live. Return true if the last words were read or are not needed. Otherwise start to
 * read them, and return false.
 */
static bool has_last_words(struct local_job *job)
{
	const struct spec_job *snap = job->rec->job;
	cleanup_free char *error = NULL, *path = NULL;
	const struct spec_log *log;

	if (job->rec->goal != SPEC_GOAL_FAIL || job->words_known)
		return true;
	if (job->words)
		return false;
	log = spec_last_log(snap);
	if (!log)
		return true;
	error = local_replica_error_file(
		job->reps[spec_job_first_failed(snap, NULL) - snap->replicas]);
	path = text_print("%s/logs/%s", job->common.dir, log->key);
	job->words =
		last_words_read(job->jobs->b->loop, job->jobs->group, error, path, on_words, job);
	return false;
}

/*
 * REP is no longer live. Decide what REP, its role and JOB do next. If REP is NULL, decide only for
 * JOB.
 */
static void decide(void *data, struct local_replica *rep)
{
	struct local_job *job = data;
	struct role *role = rep ? role_of(job, rep) : NULL;

	if (local_record_is_over(job->record) || job->let_go)
		return;
	if (job->rec->goal != SPEC_GOAL_RUN) {
		if (job->live == 0 && has_last_words(job))
			finish(job);
	} else if (job->rec->again) {
		if (job->live > 0)
			return;
		local_record_spec(job->record)->again = false;
		for (size_t i = 0; i < job->rec->job->n_roles; i++)
			job->roles[i].again = false;
		begin_again(job, 0, job->rec->job->n_replicas);
	} else if (role && role->again) {
		if (role->live > 0)
			return;
		role->again = false;
		begin_again(job, role->first, role->n);
	} else if (rep && local_replica_record(rep)->state == SPEC_PENDING) {
		/* This daemon, or the last one before it was killed, has planned a restart. */
		local_replica_begin(rep);
	} else if (job->live == 0 && all_succeeded(job)) {
		finish(job);
	}
}

static void on_lives(void *data, struct local_replica *rep, bool live)
{
	struct local_job *job = data;
	struct role *role = role_of(job, rep);

	job->live += live ? 1 : (size_t)-1;
	role->live += live ? 1 : (size_t)-1;
}

uint64_t local_job_end(struct local_job *job, enum spec_goal goal)
{
	uint64_t change;

	local_record_set_goal(job->record, goal);
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		local_replica_end(job->reps[i]);
	change = local_record_changed(job->record);
	post_slots(job->jobs);
	decide(job, NULL);
	return change;
}

static uint64_t job_restart(struct local_job *job, unsigned delay_ms)
{
	uint64_t change;

	local_record_restart(job->record);
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		local_replica_restart(job->reps[i], delay_ms);
	change = local_record_changed(job->record);
	decide(job, NULL);
	return change;
}

uint64_t local_job_restart(struct local_job *job)
{
	/* A restart also resumes the job, because it sends SIGCONT. */
	local_record_spec(job->record)->job->suspended = false;
	local_record_set_reason(job->record, "", "");
	return job_restart(job, 0);
}

uint64_t local_job_cancel(struct local_job *job)
{
	local_record_spec(job->record)->job->history = true;
	return local_record_is_over(job->record) ? local_record_changed(job->record)
						 : local_job_end(job, SPEC_GOAL_CANCEL);
}

static void signal_all(struct local_job *job, int sig)
{
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		local_replica_signal(job->reps[i], sig);
}

uint64_t local_job_suspend(struct local_job *job)
{
	local_record_spec(job->record)->job->suspended = true;
	local_record_set_reason(job->record, "Suspended", "");
	signal_all(job, SIGSTOP);
	post_slots(job->jobs);
	return local_record_changed(job->record);
}

uint64_t local_job_resume(struct local_job *job)
{
	local_record_spec(job->record)->job->suspended = false;
	local_record_set_reason(job->record, "", "");
	if (job->rec->queue_number)
		line_up(job);
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		local_replica_resume(job->reps[i]);
	return local_record_changed(job->record);
}

bool local_job_has_saved(const struct local_job *job, uint64_t change)
{
	return local_record_saved(job->record) >= change;
}

void local_job_kill(struct local_job *job)
{
	signal_all(job, SIGKILL);
}

bool local_job_is_ending(const struct local_job *job)
{
	return local_record_is_over(job->record) || job->rec->goal != SPEC_GOAL_RUN;
}

const struct spec_record *local_job_record(const struct local_job *job)
{
	return job->rec;
}

struct local_job *local_job_new(struct local_jobs *jobs, struct record *entry,
				struct spec_record *rec)
{
	static const struct local_record_events record_events = {on_published, on_written,
								 on_settled};
	static const struct local_replica_events replica_events = {on_lives, on_failed, decide};
	struct output_job *output = output_job_open(jobs->b->output, spec_job_key(rec->job));
	struct local_job *job;

	if (!output)
		return NULL;
	job = new0(struct local_job);
	job->jobs = jobs;
	job->rec = rec;
	job->common = (struct local_replica_job){
		.all = jobs->replicas,
		.output = output,
		.dir = file_path(jobs->b->config.state_dir, spec_job_key(rec->job), NULL),
		.events = &replica_events,
		.data = job,
	};
	job->record =
		local_record_new(jobs->b->loop, jobs->b->store, entry, rec, &record_events, job);
	job->is_new = record_head(entry)->state == RECORD_SUBMITTING;
	job->common.record = job->record;
	job->reps = new0_n(struct local_replica *, rec->job->n_replicas);
	job->roles = new0_n(struct role, rec->job->n_roles);
	for (size_t i = 0; i < rec->job->n_roles; i++)
		job->roles[i] =
			(struct role){.first = rec->job->roles[i].first, .n = rec->job->roles[i].n};
	for (size_t i = 0; i < rec->job->n_replicas; i++)
		job->reps[i] = local_replica_new(&job->common, i);
	jobs->last_queue_number = max_of(jobs->last_queue_number, rec->queue_number);
	HASH_ADD_KEYPTR(hh, jobs->all, rec->job->id, strlen(rec->job->id), job);
	group_enter(jobs->group);
	return job;
}

void local_job_launch(struct local_job *job)
{
	job->is_new = false;
	join_queue(job);
	for (size_t i = 0; i < job->rec->job->n_replicas; i++) {
		local_replica_open_log(job->reps[i]);
		local_replica_begin(job->reps[i]);
	}
}

/* --- jobs of an earlier daemon --- */

struct task_found *local_job_find_attempts(struct local_jobs *jobs, const struct spec_record *rec)
{
	cleanup_free char *dir = file_path(jobs->b->config.state_dir, spec_job_key(rec->job), NULL);
	struct task_found *found = new0_n(struct task_found, rec->job->n_replicas);

	for (size_t i = 0; i < rec->job->n_replicas; i++)
		local_replica_find_attempt(jobs->tasks, dir, rec, i, &found[i]);
	return found;
}

/* Plan again the starts that the last daemon had planned. */
static void plan(struct local_job *job)
{
	if (job->rec->again) {
		job_restart(job, LOCAL_DELAY_MIN_MS);
		return;
	}
	for (size_t i = 0; i < job->rec->job->n_replicas; i++) {
		struct local_replica *rep = job->reps[i];
		const struct spec_role *spec = spec_role_of(job, rep);
		bool again = job->rec->plans[i].again;
		struct role *role = role_of(job, rep);

		if (again && !role->again && spec && spec->retry_policy == SPEC_RETRY_ROLE)
			restart_role(job, role, LOCAL_DELAY_MIN_MS);
		else if (local_replica_is_idle(rep) && !again &&
			 local_replica_record(rep)->state == SPEC_PENDING)
			local_replica_begin(rep);
		if (local_replica_is_idle(rep))
			decide(job, rep);
	}
}

/* If kxfs decided to end or restart JOB before local_jobs_take_charge, do that now. */
static void go_on(struct local_job *job)
{
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		local_replica_go_on(job->reps[i]);
	if (job->rec->goal != SPEC_GOAL_RUN)
		local_job_end(job, job->rec->goal);
}

/* an attempt of an earlier daemon */
struct adopted {
	size_t i;
	int64_t end; /* when the attempt ended; INT64_MAX: unknown */
};

static int by_end(const void *a, const void *b)
{
	const struct adopted *x = a, *y = b;

	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

/* Record how attempts have ended, ordered by time. The first failure decides what JOB does next. */
static void take_ends(struct local_job *job, const struct task_found *found)
{
	const size_t n = job->rec->job->n_replicas;
	cleanup_free struct adopted *all = new0_n(struct adopted, n);

	for (size_t i = 0; i < n; i++)
		all[i] = (struct adopted){i, found[i].state == TASK_OVER && found[i].end.finished
						     ? found[i].end.finished
						     : INT64_MAX};
	qsort(all, n, sizeof(*all), by_end);
	for (size_t i = 0; i < n; i++)
		local_replica_adopted(job->reps[all[i].i], &found[all[i].i]);
}

void local_job_take_over(struct local_job *job, const struct task_found *found)
{
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		local_replica_adopt(job->reps[i], &found[i]);
	job->is_new &= job->live == 0;
	local_record_publish(job->record);
	if (job->rec->goal == SPEC_GOAL_RUN)
		plan(job);
	take_ends(job, found);
	post_slots(job->jobs);
}

/* --- all jobs --- */

/* Return the job whose record is ENTRY; NULL if the job is over or not local. */
static struct local_job *job_of(struct local_jobs *jobs, const struct record *entry)
{
	struct local_job *job = local_jobs_find(jobs, record_head(entry)->id);

	return job && local_record_entry(job->record) == entry ? job : NULL;
}

static char *part_of(void *data, const struct record *entry, const struct spec_head *next,
		     enum record_part part)
{
	struct local_job *job = job_of(data, entry);

	/* After a refused launch, the record must have neither a plan nor a snapshot. */
	if (next->state == RECORD_HELD || next->state == RECORD_NEVER)
		return text_copy("");
	return job ? local_record_part(job->record, part) : NULL;
}

static void on_rewritten(void *data, struct record *entry, int err)
{
	struct local_job *job = job_of(data, entry);

	if (job)
		local_record_written(job->record, err);
}

struct local_jobs *local_jobs_new(struct backend *b, struct group *group,
				  const struct spec_slots *limits)
{
	struct local_jobs *jobs = new0(struct local_jobs);

	jobs->b = b;
	jobs->group = group;
	jobs->limits = *limits;
	jobs->tasks = tasks_new(b->loop, group);
	jobs->replicas = local_replicas_new(b->loop, jobs->tasks, b->config.grace_ms);
	records_set_part(b->records, RECORD_PLAN, part_of, jobs);
	records_set_part(b->records, RECORD_SNAPSHOT, part_of, jobs);
	records_set_written(b->records, on_rewritten, jobs);
	return jobs;
}

void local_jobs_set_events(struct local_jobs *jobs, const struct local_jobs_events *events)
{
	jobs->events = *events;
}

void local_jobs_take_charge(struct local_jobs *jobs)
{
	struct local_job *job, *next;

	jobs->in_charge = true;
	HASH_ITER(hh, jobs->all, job, next)
		join_late(job);
	local_replicas_begin(jobs->replicas);
	post_slots(jobs);
	HASH_ITER(hh, jobs->all, job, next)
		go_on(job);
}

void local_jobs_free(struct local_jobs *jobs)
{
	struct local_job *job, *next;

	if (!jobs)
		return;
	HASH_ITER(hh, jobs->all, job, next)
		job_free(job);
	orphans_release(&jobs->orphans);
	local_replicas_free(jobs->replicas);
	tasks_free(jobs->tasks);
	free(jobs);
}

/* Let JOB outlive the mount. Its programs continue, and its planned starts remain in the record. */
static void let_go(struct local_job *job)
{
	job->let_go = true;
	for (size_t i = 0; i < job->rec->job->n_replicas; i++)
		local_replica_let_go(job->reps[i]);
	local_record_changed(job->record);
}

void local_jobs_stop(struct local_jobs *jobs, bool linger)
{
	struct local_job *job, *next;

	orphans_release(&jobs->orphans);
	HASH_ITER(hh, jobs->all, job, next) {
		local_record_last(job->record);
		if (local_record_is_over(job->record))
			/* The job is over, but its record is not written yet. Retry the write. */
			local_record_changed(job->record);
		else if (!jobs->in_charge || (linger && job->rec->goal == SPEC_GOAL_RUN))
			let_go(job);
		else
			local_job_end(job, SPEC_GOAL_STOP);
	}
	if (linger || !jobs->in_charge)
		tasks_outlive(jobs->tasks);
}

static void on_orphan_ended(void *data)
{
	post_slots(data);
}

void local_jobs_add_orphan(struct local_jobs *jobs, struct orphan *orphan)
{
	orphan_watch(&jobs->orphans, orphan, on_orphan_ended, jobs);
}

struct tasks *local_jobs_tasks(const struct local_jobs *jobs)
{
	return jobs->tasks;
}

uint64_t local_jobs_gpus(const struct local_jobs *jobs)
{
	return atomic_load(&jobs->taken);
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
		{"local_restarts_total", "counter", "Restarts by a retry policy",
		 atomic_load(&jobs->n_restarts)},
		{"local_record_failures_total", "counter", "Failed writes of job records",
		 atomic_load(&jobs->n_unsaved)},
	};

	local_replicas_metrics(jobs->replicas, out);
	print_metrics(out, metrics, array_size(metrics));
}
