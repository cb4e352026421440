/* SPDX-License-Identifier: MIT */
/*
 * A local job as a whole: its state and phase as they follow from its replicas and from what is
 * to become of it, restarting and ending all of it, and its end.
 */
#include <errno.h>

#include "backend/local.h"

/* What a goal other than LOCAL_RUN makes of a job. NULL: the replica that failed has said it. */
static const struct ending {
	enum spec_state state;
	const char *phase;
	const char *reason;
	const char *message;
} endings[] = {
	[LOCAL_RUN] = {SPEC_SUCCEEDED, "Completed", "Completed", ""},
	[LOCAL_FAIL] = {SPEC_FAILED, "Failed", NULL, NULL},
	[LOCAL_TERMINATE] = {SPEC_FAILED, "Terminated", "Terminated", "terminated through ctl"},
	[LOCAL_CANCEL] = {SPEC_CANCELLED, "Cancelled", "Cancelled", "its directory was removed"},
	[LOCAL_STOP] = {SPEC_CANCELLED, "Cancelled", "Unmounted",
			"the mount was taken down while the job ran"},
};

struct local_job *local_job_find(struct local *l, const char *id)
{
	struct local_job *job;

	HASH_FIND_STR(l->jobs, id, job);
	return job;
}

struct local_job *local_job_new(struct local *l, struct spec_record *rec)
{
	struct local_job *job = calloc(1, sizeof(*job));
	size_t n = 0;

	if (job) {
		job->l = l;
		job->rec = rec;
		job->reps = calloc(rec->n_replicas, sizeof(*job->reps));
		job->roles = calloc(rec->app->n_roles, sizeof(*job->roles));
		job->spool = spool_job_open(l->b->spool, rec->id);
	}
	if (!job || !job->reps || !job->roles || !job->spool) {
		if (job) {
			if (job->spool)
				spool_job_close(job->spool);
			free(job->reps);
			free(job->roles);
			free(job);
		}
		spec_record_free(rec);
		return NULL;
	}
	for (size_t i = 0; i < rec->n_replicas; i++) {
		struct local_role *role = &job->roles[rec->replicas[i].role];

		if (role->n++ == 0)
			role->first = n;
		job->reps[n++] = (struct local_replica){.job = job, .rec = &rec->replicas[i]};
	}
	job->to_start = n;
	HASH_ADD_KEYPTR(hh, l->jobs, rec->id, strlen(rec->id), job);
	return job;
}

void local_job_free(struct local_job *job)
{
	struct local *l = job->l;

	HASH_DEL(l->jobs, job);
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		local_replica_free(&job->reps[i]);
	local_save_free(job);
	spool_job_close(job->spool);
	spec_record_free(job->rec);
	free(job->reps);
	free(job->roles);
	free(job);
}

static const char *phase_of(const struct local_job *job)
{
	if (job->goal != LOCAL_RUN)
		return "Terminating";
	if (job->rec->suspended)
		return "Suspended";
	if (job->again || job->restarting)
		return "Restarting";
	return job->started ? "Running" : "Pending";
}

void local_job_touch(struct local_job *job)
{
	struct spec_record *rec = job->rec;

	if (!job->over) {
		local_say(&rec->phase, "%s", phase_of(job));
		if (rec->history)
			rec->state = endings[job->goal].state;
		else if (rec->suspended)
			rec->state = SPEC_CANCELLED;
		else
			rec->state = job->started ? SPEC_RUNNING : SPEC_PENDING;
	}
	rec->changed = loop_time_ns();
	if (spec_transitions_add(&rec->transitions, rec->state, rec->phase, rec->changed) < 0)
		diag(DIAG_ERROR, "%s: no memory to note its phase", rec->id);
	local_save(job);
}

void local_job_end(struct local_job *job, enum local_goal goal)
{
	struct spec_record *rec = job->rec;

	/* The first reason to end it is the one that is told. */
	if (job->goal == LOCAL_RUN) {
		job->goal = goal;
		if (endings[goal].reason) {
			local_say(&rec->reason, "%s", endings[goal].reason);
			local_say(&rec->message, "%s", endings[goal].message);
		}
	}
	rec->suspended = false;
	job->again = false;
	job->restarting = false;
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		local_replica_end(&job->reps[i]);
	local_job_touch(job);
	local_job_next(job, NULL);
}

void local_job_restart(struct local_job *job, unsigned delay_ms)
{
	job->again = true;
	job->restarting = true;
	job->delay_ms = delay_ms;
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		local_replica_again(&job->reps[i]);
	local_job_touch(job);
	local_job_next(job, NULL);
}

static bool all_succeeded(const struct local_job *job)
{
	for (size_t i = 0; i < job->rec->n_replicas; i++)
		if (job->rec->replicas[i].state != SPEC_SUCCEEDED)
			return false;
	return true;
}

/* A replica that was never started has an empty log, not none. */
static void end_unused_log(struct local_replica *rep)
{
	cleanup_free char *key = NULL;

	if (rep->used)
		return;
	local_replica_open_log(rep);
	if (rep->begun)
		key = spec_record_log_key(rep->job->rec, rep->rec, rep->rec->attempt);
	if (key)
		spool_log_end(rep->job->spool, key, NULL, NULL);
}

/* Nothing of it runs and nothing will. */
static void finish(struct local_job *job)
{
	const struct ending *ending = &endings[job->goal];
	struct spec_record *rec = job->rec;

	job->over = true;
	for (size_t i = 0; i < rec->n_replicas; i++)
		end_unused_log(&job->reps[i]);
	spool_job_end(job->spool);
	rec->state = ending->state;
	rec->suspended = false;
	rec->finished = loop_time_ns();
	local_say(&rec->phase, "%s", ending->phase);
	if (job->goal == LOCAL_RUN) {
		local_say(&rec->reason, "%s", ending->reason);
		local_say(&rec->message, "%s", ending->message);
		for (size_t i = 0; i < rec->n_replicas && !job->blamed; i++)
			if (job->reps[i].lost)
				local_job_blame(job, &job->reps[i]);
	}
	local_job_touch(job);
}

static void begin_all(struct local_job *job, size_t first, size_t n, unsigned delay_ms)
{
	for (size_t i = first; i < first + n; i++)
		if (job->reps[i].again)
			local_replica_begin(&job->reps[i], delay_ms);
}

void local_job_next(struct local_job *job, struct local_replica *rep)
{
	struct local_role *role = rep ? &job->roles[rep->rec->role] : NULL;

	if (job->over)
		return;
	if (job->goal != LOCAL_RUN) {
		if (job->live == 0)
			finish(job);
	} else if (job->again) {
		if (job->live > 0)
			return;
		job->again = false;
		for (size_t i = 0; i < job->rec->app->n_roles; i++)
			job->roles[i].again = false;
		begin_all(job, 0, job->rec->n_replicas, job->delay_ms);
	} else if (role && role->again) {
		if (role->live > 0)
			return;
		role->again = false;
		begin_all(job, role->first, role->n, role->delay_ms);
	} else if (rep && rep->again) {
		local_replica_begin(rep, rep->delay_ms);
	} else if (job->live == 0 && all_succeeded(job)) {
		finish(job);
	}
}
