/* SPDX-License-Identifier: MIT */
/*
 * What others see of a record: the snapshot that is published, and the names of its logs.
 */
#include <errno.h>

#include "spec/name.h"
#include "spec/record.h"

static const struct spec_role *role_of(const struct spec_record *r,
				       const struct spec_record_replica *rep)
{
	return &r->app->roles[rep->role];
}

char *spec_record_log_key(const struct spec_record *r, const struct spec_record_replica *rep,
			  unsigned attempt)
{
	cleanup_free char *dir = spec_name_replica_dir(role_of(r, rep)->name, rep->id);
	char *ret;

	return dir && asprintf(&ret, "%s.%u", dir, attempt) >= 0 ? ret : NULL;
}

char *spec_record_log_prefix(const struct spec_record *r, const struct spec_record_replica *rep)
{
	cleanup_free char *dir = spec_name_replica_dir(role_of(r, rep)->name, rep->id);
	char *ret;

	if (!dir)
		return NULL;
	/* The role as its directory has it: a name may hold what would break a line. */
	*strrchr(dir, '-') = '\0';
	return asprintf(&ret, "%s/%u ", dir, rep->id) >= 0 ? ret : NULL;
}

/* The bit set of actions that a job in this phase does not ignore. */
static unsigned actions_of(const struct spec_record *r)
{
	const unsigned stop = 1u << SPEC_TERMINATE, again = 1u << SPEC_RESTART | stop;

	if (r->history)
		return 0;
	if (streq(r->phase, "Pending") || streq(r->phase, "Running"))
		return 1u << SPEC_SUSPEND | again;
	if (streq(r->phase, "Suspended"))
		return 1u << SPEC_RESUME | again;
	return streq(r->phase, "Restarting") ? stop : 0;
}

static int fill_logs(struct spec_replica *to, unsigned attempts)
{
	char *key cleanup_free = NULL;

	for (unsigned i = 0; i < attempts; i++) {
		free(take_ptr(key));
		if (asprintf(&key, "%s.%u", to->name, i) < 0) {
			key = NULL;
			return -ENOMEM;
		}
		if (spec_replica_add_log(to, key, "") < 0)
			return -ENOMEM;
	}
	return 0;
}

static int fill_replica(struct spec_replica *to, const struct spec_record *r,
			const struct spec_record_replica *rep)
{
	cleanup_free char *dir = spec_name_replica_dir(role_of(r, rep)->name, rep->id);

	to->role = rep->role;
	to->id = rep->id;
	to->state = rep->state;
	to->attempt = rep->attempt;
	to->exit_code = rep->exit_code;
	to->signal = rep->signal;
	to->started = rep->started;
	to->finished = rep->finished;
	if (!dir || spec_set(&to->name, dir) < 0 || spec_set(&to->reason, rep->reason) < 0 ||
	    spec_set(&to->message, rep->message) < 0)
		return -ENOMEM;
	return fill_logs(to, rep->attempt + 1);
}

static int fill_roles(struct spec_job *job, const struct spec_record *r)
{
	size_t first = 0;

	for (size_t i = 0; i < job->n_roles; i++) {
		const struct spec_role *from = &r->app->roles[i];
		struct spec_role_status *to = &job->roles[i];

		to->desired = (unsigned)from->num_replicas;
		to->minimum = from->min_replicas < 0 ? to->desired : (unsigned)from->min_replicas;
		to->first = first;
		to->n = to->desired;
		first += to->n;
		job->max_retries = max_of(job->max_retries, (unsigned)from->max_retries);
		if (spec_set(&to->name, from->name) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int fill_texts(struct spec_job *job, const struct spec_record *r)
{
	if (spec_set(&job->id, r->id) < 0 || spec_set(&job->uid, r->uid) < 0 ||
	    spec_set(&job->app, r->app->name) < 0 || spec_set(&job->phase, r->phase) < 0 ||
	    spec_set(&job->reason, r->reason) < 0 || spec_set(&job->message, r->message) < 0 ||
	    spec_set(&job->backend, "local") < 0 || spec_set(&job->submitter, r->submitter) < 0 ||
	    spec_set(&job->submission, r->submission) < 0)
		return -ENOMEM;
	return 0;
}

struct spec_job *spec_record_job(const struct spec_record *r)
{
	cleanup_job struct spec_job *job = spec_job_new(r->app->n_roles, r->n_replicas);

	if (!job || fill_texts(job, r) < 0 || fill_roles(job, r) < 0)
		return NULL;
	job->state = r->suspended ? SPEC_CANCELLED : r->state;
	job->own = true;
	job->has_appdef = true;
	job->history = r->history;
	job->suspended = r->suspended;
	job->retries = r->retries;
	job->created = r->created;
	job->started = r->started;
	job->finished = r->finished;
	job->changed = r->changed;
	job->actions = actions_of(r);
	if (spec_transitions_copy(&job->transitions, &r->transitions) < 0)
		return NULL;
	for (size_t i = 0; i < r->n_replicas; i++)
		if (fill_replica(&job->replicas[i], r, &r->replicas[i]) < 0)
			return NULL;
	return take_ptr(job);
}
