/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of jobs. A mount may show ten thousand of them, so a job, its roles and its replicas
 * are one block, and all empty strings are one.
 */
#include "spec/job.h"

#include <assert.h>
#include <errno.h>

/* What every empty string of a job points at: never written, never freed. */
static const char empty_string[] = "";

static char *empty(void)
{
	return (char *)(uintptr_t)empty_string;
}

static const char *const state_names[SPEC_N_STATES] = {
	[SPEC_SUBMITTED] = "SUBMITTED", [SPEC_PENDING] = "PENDING", [SPEC_RUNNING] = "RUNNING",
	[SPEC_SUCCEEDED] = "SUCCEEDED", [SPEC_FAILED] = "FAILED",   [SPEC_CANCELLED] = "CANCELLED",
	[SPEC_UNKNOWN] = "UNKNOWN",
};

static const char *const action_names[SPEC_N_ACTIONS] = {
	[SPEC_SUSPEND] = "suspend",
	[SPEC_RESUME] = "resume",
	[SPEC_RESTART] = "restart",
	[SPEC_TERMINATE] = "terminate",
};

const char *spec_state_name(enum spec_state state)
{
	assert((unsigned)state < SPEC_N_STATES);
	return state_names[state];
}

int spec_state_parse(const char *word)
{
	for (int i = 0; i < SPEC_N_STATES; i++)
		if (streq(word, state_names[i]))
			return i;
	return -EINVAL;
}

bool spec_state_is_final(enum spec_state state)
{
	return state == SPEC_SUCCEEDED || state == SPEC_FAILED || state == SPEC_CANCELLED;
}

const char *spec_action_name(enum spec_action action)
{
	assert((unsigned)action < SPEC_N_ACTIONS);
	return action_names[action];
}

int spec_action_parse(const char *word)
{
	if (streq(word, "abort"))
		return SPEC_SUSPEND;
	for (int i = 0; i < SPEC_N_ACTIONS; i++)
		if (streq(word, action_names[i]))
			return i;
	return -EINVAL;
}

void spec_unset(char **field)
{
	if (*field != empty_string)
		free(*field);
	*field = NULL;
}

int spec_set(char **field, const char *value)
{
	char *copy = empty();

	if (value && *value) {
		copy = strdup(value);
		if (!copy)
			return -ENOMEM;
	}
	spec_unset(field);
	*field = copy;
	return 0;
}

struct spec_text *spec_text_new(const char *text, size_t len)
{
	struct spec_text *t = malloc(sizeof(*t) + len + 1);

	if (!t)
		return NULL;
	t->refs = 1;
	t->len = len;
	memcpy(t->text, text, len);
	t->text[len] = '\0';
	return t;
}

struct spec_text *spec_text_ref(struct spec_text *t)
{
	__atomic_fetch_add(&t->refs, 1, __ATOMIC_RELAXED);
	return t;
}

void spec_text_unref(struct spec_text *t)
{
	if (t && __atomic_fetch_sub(&t->refs, 1, __ATOMIC_ACQ_REL) == 1)
		free(t);
}

struct spec_job *spec_job_new(size_t n_roles, size_t n_replicas)
{
	size_t roles_at = sizeof(struct spec_job);
	size_t replicas_at = roles_at + n_roles * sizeof(struct spec_role_status);
	struct spec_job *job = calloc(1, replicas_at + n_replicas * sizeof(struct spec_replica));

	if (!job)
		return NULL;
	job->refs = 1;
	job->id = job->uid = job->app = job->phase = job->reason = job->message = empty();
	job->cause = job->cause_text = empty();
	job->backend = job->namespace = job->queue = job->submitter = job->submission = empty();
	job->roles = (void *)((char *)job + roles_at);
	job->n_roles = n_roles;
	job->replicas = (void *)((char *)job + replicas_at);
	job->n_replicas = n_replicas;
	for (size_t i = 0; i < n_roles; i++)
		job->roles[i].name = empty();
	for (size_t i = 0; i < n_replicas; i++) {
		struct spec_replica *r = &job->replicas[i];

		r->name = r->pod = r->node = r->reason = r->message = empty();
		r->exit_code = -1;
	}
	return job;
}

/* Where a log of CONTAINER belongs: behind the others of its group; the replica's own come first. */
static size_t log_place(const struct spec_replica *r, const char *container)
{
	size_t i = r->n_logs;

	while (i > 0 && !streq(r->logs[i - 1].container, container))
		i--;
	return i == 0 && *container ? r->n_logs : i;
}

int spec_replica_copy_log(struct spec_replica *r, const struct spec_log *from)
{
	const char *container = from->container ? from->container : "";
	struct spec_log log = {.complete = from->complete, .gap = from->gap};
	size_t at = log_place(r, container);
	struct spec_log *v;

	if (spec_set(&log.key, from->key) < 0 || spec_set(&log.container, container) < 0)
		goto no_memory;
	v = reallocarray(r->logs, r->n_logs + 1, sizeof(*v));
	if (!v)
		goto no_memory;
	memmove(&v[at + 1], &v[at], (r->n_logs - at) * sizeof(*v));
	v[at] = log;
	r->logs = v;
	r->n_logs++;
	return 0;
no_memory:
	spec_unset(&log.key);
	spec_unset(&log.container);
	return -ENOMEM;
}

int spec_replica_add_log(struct spec_replica *r, const char *key, const char *container)
{
	const struct spec_log log = {.key = (char *)(uintptr_t)key,
				     .container = (char *)(uintptr_t)container};

	return spec_replica_copy_log(r, &log);
}

const struct spec_job *spec_job_ref(const struct spec_job *job)
{
	struct spec_job *mutable = (struct spec_job *)(uintptr_t)job;

	__atomic_fetch_add(&mutable->refs, 1, __ATOMIC_RELAXED);
	return job;
}

static void replica_clear(struct spec_replica *r)
{
	spec_unset(&r->name);
	spec_unset(&r->pod);
	spec_unset(&r->node);
	spec_unset(&r->reason);
	spec_unset(&r->message);
	for (size_t i = 0; i < r->n_logs; i++) {
		spec_unset(&r->logs[i].key);
		spec_unset(&r->logs[i].container);
	}
	free(r->logs);
}

static void job_free(struct spec_job *job)
{
	spec_unset(&job->id);
	spec_unset(&job->uid);
	spec_unset(&job->app);
	spec_unset(&job->phase);
	spec_unset(&job->reason);
	spec_unset(&job->message);
	spec_unset(&job->cause);
	spec_unset(&job->cause_text);
	spec_unset(&job->backend);
	spec_unset(&job->namespace);
	spec_unset(&job->queue);
	spec_unset(&job->submitter);
	spec_unset(&job->submission);
	for (size_t i = 0; i < job->n_roles; i++)
		spec_unset(&job->roles[i].name);
	for (size_t i = 0; i < job->n_replicas; i++)
		replica_clear(&job->replicas[i]);
	spec_transitions_clear(&job->transitions);
	spec_text_unref(job->object);
	free(job);
}

void spec_job_unref(const struct spec_job *job)
{
	struct spec_job *mutable = (struct spec_job *)(uintptr_t)job;
	unsigned before;

	if (!job)
		return;
	/* Release: what this thread read of the job is done; acquire: so is all that others did. */
	before = __atomic_fetch_sub(&mutable->refs, 1, __ATOMIC_ACQ_REL);
	assert(before > 0);
	if (before == 1)
		job_free(mutable);
}

/* The number behind the last dash of NAME; false: there is none, or it is too large to be one. */
static bool trailing_number(const char *name, size_t *ret)
{
	const char *dash = strrchr(name, '-');
	size_t n = dash ? strspn(dash + 1, "0123456789") : 0;

	if (n == 0 || n > 9 || dash[1 + n])
		return false;
	*ret = strtoul(dash + 1, NULL, 10);
	return true;
}

bool spec_job_is_over(const struct spec_job *job)
{
	for (size_t i = 0; i < job->n_replicas; i++)
		if (!job->replicas[i].finished)
			return false;
	return spec_state_is_final(job->state) && !job->suspended;
}

const struct spec_replica *spec_job_replica(const struct spec_job *job, const char *name)
{
	size_t k;

	/* Usually replica K is the K-th of its role: listing a large job must not be quadratic. */
	if (trailing_number(name, &k)) {
		for (size_t i = 0; i < job->n_roles; i++) {
			const struct spec_role_status *role = &job->roles[i];

			if (k < role->n && streq(job->replicas[role->first + k].name, name))
				return &job->replicas[role->first + k];
		}
	}
	for (size_t i = 0; i < job->n_replicas; i++)
		if (streq(job->replicas[i].name, name))
			return &job->replicas[i];
	return NULL;
}
