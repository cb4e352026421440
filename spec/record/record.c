/* SPDX-License-Identifier: MIT */
/* Makes, writes and parses records of local jobs, and makes the snapshots to publish. */
#include "spec/record/record.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/time.h"
#include "spec/base/utf8.h"
#include "spec/job/job_tree.h"
#include "spec/record/local.h"
#include "spec/yaml/field.h"
#include "spec/yaml/yaml.h"

/* A role may request any amount of a resource. kxfs does not show amounts above this limit. */
#define FIGURE_MAX 1e15

/* maximum number of a job's logs; each log is a file in the job's directory */
#define RECORD_MAX_LOGS 1000000

#define JOB(name, type, ...)  SPEC_FIELD(struct spec_record, name, type, __VA_ARGS__)
#define PLAN(name, type, ...) SPEC_FIELD(struct spec_plan, name, type, __VA_ARGS__)

static const struct spec_field job_fields[] = {
	JOB(work_dir, SPEC_FIELD_TEXT),
	JOB(goal, SPEC_FIELD_UNSIGNED, .max = SPEC_GOAL_STOP),
	JOB(again, SPEC_FIELD_BOOL),
	/* Version 1.0 already used this key, so it can't be renamed. */
	{.key = "turn",
	 .type = SPEC_FIELD_INT64,
	 .at = offsetof(struct spec_record, queue_number),
	 .max = SPEC_MAX_QUEUE_NUMBER},
	{0},
};

static const struct spec_field plan_fields[] = {
	PLAN(ended, SPEC_FIELD_BOOL),
	PLAN(again, SPEC_FIELD_BOOL),
	PLAN(restarts, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	{0},
};

static struct spec_record *record_of(struct spec_job *job)
{
	struct spec_record *r = new0(struct spec_record);

	r->job = job;
	r->plans = new0_n(struct spec_plan, job->n_replicas);
	r->work_dir = r->fault = spec_empty();
	return r;
}

/* Set the request of ROLE. Its memory limit is unknown, since kxfs enforces none on local jobs. */
static void note_request(struct spec_role_status *role, const struct spec_resource *asked)
{
	const double cpu = asked->cpu * 1000, memory = asked->mem_mb * 1e6;
	const struct spec_request request = {
		.cpu = cpu > 0 && cpu < FIGURE_MAX ? (int64_t)llround(cpu) : -1,
		.memory = memory > 0 && memory < FIGURE_MAX ? (int64_t)llround(memory) : -1,
		.memory_limit = -1,
		.gpu = asked->gpu > 0 && asked->gpu < (int64_t)FIGURE_MAX ? asked->gpu : 0,
	};

	spec_role_set_request(role, &request);
}

struct spec_job *spec_record_shape(const struct spec_app *app)
{
	struct spec_job *job;
	struct spec_replica *rep;
	size_t n = 0;

	for (size_t i = 0; i < app->n_roles; i++)
		n += (size_t)app->roles[i].num_replicas;
	job = spec_job_new(app->n_roles, n);
	rep = job->replicas;
	for (size_t i = 0; i < app->n_roles; i++) {
		const struct spec_role *from = &app->roles[i];
		struct spec_role_status *to = &job->roles[i];

		spec_set(&to->name, from->name);
		note_request(to, &from->resource);
		to->desired = (unsigned)from->num_replicas;
		to->minimum = from->min_replicas < 0 ? to->desired : (unsigned)from->min_replicas;
		to->first = (unsigned)(rep - job->replicas);
		to->n = to->desired;
		job->max_retries = max_of(job->max_retries, (unsigned)from->max_retries);
		for (unsigned k = 0; k < to->n; k++, rep++) {
			cleanup_free char *dir = spec_name_replica_dir(from->name, k);

			rep->role = (unsigned)i;
			rep->id = k;
			rep->state = SPEC_PENDING;
			spec_set(&rep->name, dir);
		}
	}
	return job;
}

struct spec_record *spec_record_new(struct spec_app *app, const struct spec_record_origin *o)
{
	struct spec_record *r = record_of(spec_record_shape(app));
	struct spec_job *job = r->job;

	r->app = app;
	spec_set(&r->work_dir, o->work_dir);
	spec_set(&job->id, o->id);
	spec_set(&job->uid, o->uid);
	spec_set(&job->app, app->name);
	spec_set(&job->backend, "local");
	spec_set(&job->submission, o->submission);
	spec_set(&job->submitter, o->submitter);
	spec_set(&job->phase, "Pending");
	job->state = SPEC_PENDING;
	job->own = true;
	job->has_appdef = true;
	job->created = job->changed = o->created;
	job->time_limit = (int)o->time_limit;
	job->ttl = (int)o->ttl;
	spec_transitions_add(&job->transitions, SPEC_PENDING, "Pending", o->created);
	for (size_t i = 0; i < job->n_replicas; i++)
		spec_record_attempt(r, i, 0);
	return r;
}

void spec_record_free(struct spec_record *r)
{
	if (!r)
		return;
	spec_fields_unset(job_fields, r);
	spec_unset(&r->fault);
	spec_job_unref(r->job);
	free(r->plans);
	spec_app_free(r->app);
	free(r);
}

void spec_record_attempt(struct spec_record *r, size_t i, unsigned n)
{
	struct spec_replica *rep = &r->job->replicas[i];
	cleanup_free char *key = spec_record_log_key(rep, n);

	rep->attempt = n;
	spec_replica_add_log(rep, key, "");
}

char *spec_record_snapshot(const struct spec_record *r)
{
	cleanup_json struct json_object *root = spec_snapshot_tree(r->job, SPEC_SNAPSHOT_NO_LOGS);

	return spec_tree_print(root);
}

char *spec_record_plan(const struct spec_record *r)
{
	cleanup_json struct json_object *root = spec_tree_map();
	struct json_object *list =
		spec_tree_add(root, "replicas", spec_tree_list(r->job->n_replicas));

	spec_fields_write(root, job_fields, r);
	for (size_t i = 0; i < r->job->n_replicas; i++)
		spec_fields_write(spec_tree_append(list, spec_tree_map()), plan_fields,
				  &r->plans[i]);
	return spec_tree_print(root);
}

/* Add TEXT, which may have control characters or invalid UTF-8. */
static void add_text(struct json_object *o, const char *key, const char *text)
{
	cleanup_free char *clean = spec_utf8_clean_copy(text, "");

	spec_tree_text(o, key, clean);
}

void spec_record_yaml(const struct spec_record *r, const char *file, char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *root = spec_tree_map();
	cleanup_free char *app = r->app ? spec_app_json(r->app) : NULL;

	spec_tree_text(root, "id", r->job->id);
	spec_tree_text(root, "uid", *r->job->uid ? r->job->uid : NULL);
	add_text(root, "file", file);
	add_text(root, "work_dir", r->work_dir);
	spec_yaml_add_time(root, "created", r->job->created);
	if (app)
		spec_tree_add(root, "app", spec_tree_parse(app));
	else
		add_text(root, "app_error", r->fault);
	spec_yaml_emit(root, 0, ret, ret_len);
}

/*
 * Check the roles and replicas of R: the replicas of each role must be numbered from 0. Add the
 * logs of all attempts.
 */
static int check_replicas(struct spec_record *r)
{
	const struct spec_job *job = r->job;
	size_t logs = 0;

	for (size_t i = 0; i < job->n_roles; i++)
		if (job->roles[i].n == 0 || job->roles[i].n != job->roles[i].desired)
			return -EINVAL;
	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *rep = &job->replicas[i];
		const struct spec_role_status *role = &job->roles[rep->role];
		cleanup_free char *dir = spec_name_replica_dir(role->name, rep->id);
		unsigned attempt = rep->attempt;

		logs += (size_t)attempt + 1;
		if (rep->id != i - role->first || !streq(rep->name, dir) || logs > RECORD_MAX_LOGS)
			return -EINVAL;
		for (unsigned k = 0; k <= attempt; k++)
			spec_record_attempt(r, i, k);
	}
	return 0;
}

static int read_plan(const char *text, struct spec_record *r)
{
	struct spec_value *root cleanup_free = NULL;
	const struct spec_value *list;
	int err = spec_value_parse(text, strlen(text), &root);

	if (!err)
		err = spec_fields_read(root, job_fields, r);
	list = err ? NULL : spec_read_list(root, "replicas");
	if (!list || list->n != r->job->n_replicas)
		return -EINVAL;
	for (size_t i = 0; i < list->n && !err; i++)
		err = spec_fields_read(&list->items[i], plan_fields, &r->plans[i]);
	return err;
}

int spec_record_parse(const char *snapshot, const char *plan, struct spec_record **ret)
{
	struct spec_value *root cleanup_free = NULL;
	cleanup(spec_record_freep) struct spec_record *r = NULL;
	struct spec_job *job;
	int err = snapshot ? spec_value_parse(snapshot, strlen(snapshot), &root) : -EINVAL;

	if (err == 0)
		err = spec_snapshot_of(root, SPEC_SNAPSHOT_NO_LOGS, &job);
	if (err != 0)
		return err;
	r = record_of(job);
	err = check_replicas(r);
	if (err == 0 && plan)
		err = read_plan(plan, r);
	if (err == 0)
		*ret = take_ptr(r);
	return err;
}

/*
 * True if APP has the same roles and replicas as R. They may differ, because an older kxfs may have
 * read the document differently.
 */
static bool is_app_of(const struct spec_app *app, const struct spec_record *r)
{
	bool same = app->n_roles == r->job->n_roles;

	for (size_t i = 0; same && i < app->n_roles; i++)
		same = streq(app->roles[i].name, r->job->roles[i].name) &&
		       (unsigned)app->roles[i].num_replicas == r->job->roles[i].n;
	return same;
}

void spec_record_read_app(struct spec_record *r, const char *text, size_t len, const char *home)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_app_freep) struct spec_app *app = NULL;
	/* The settings in TERMS are not used, because the job keeps those in its record. */
	struct spec_terms terms cleanup(spec_terms_clear) = {0};
	cleanup_free char *why = NULL;
	const struct spec_machine machine = {.home = home, .work_dir = r->work_dir};

	if (spec_local_parse(text, len, &machine, &app, &terms, &e) < 0) {
		why = spec_errors_text(&e, "app.yaml");
		text_set(&why, "this version of kxfs does not accept the job's app.yaml: %.*s",
			 (int)strcspn(why, "\n"), why);
		spec_set(&r->fault, why);
	} else if (!is_app_of(app, r)) {
		spec_set(&r->fault, "to this version of kxfs, the job's app.yaml "
				    "describes a different job");
	} else {
		r->app = take_ptr(app);
	}
}

char *spec_record_log_key(const struct spec_replica *rep, unsigned attempt)
{
	return text_print("%s.%u", rep->name, attempt);
}

struct spec_job *spec_record_job(const struct spec_record *r)
{
	struct spec_job *job = spec_job_copy(r->job);

	if (job->suspended)
		job->state = SPEC_CANCELLED;
	/* The cause in the record applies only while the job waits for its slot. */
	if (!r->queue_number || job->suspended || r->goal != SPEC_GOAL_RUN) {
		job->cause.reason = "";
		job->queue_position = 0;
	}
	for (size_t i = 0; i < job->n_replicas && job->time_limit; i++) {
		struct spec_replica *rep = &job->replicas[i];

		if (rep->state != SPEC_RUNNING || !rep->started ||
		    __builtin_add_overflow(rep->started, job->time_limit * NS_PER_S,
					   &rep->deadline))
			rep->deadline = 0;
	}
	if (job->history)
		job->actions = 0;
	else if (streq(job->phase, "Pending") || streq(job->phase, "Running"))
		job->actions = 1u << SPEC_SUSPEND | 1u << SPEC_RESTART | 1u << SPEC_TERMINATE;
	else if (streq(job->phase, "Suspended"))
		job->actions = 1u << SPEC_RESUME | 1u << SPEC_RESTART | 1u << SPEC_TERMINATE;
	else if (streq(job->phase, "Restarting"))
		job->actions = 1u << SPEC_TERMINATE;
	if (!r->app || r->queue_number)
		job->actions &= ~(1u << SPEC_RESTART);
	return spec_job_pack(job);
}
