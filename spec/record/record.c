/* SPDX-License-Identifier: MIT */
/*
 * Records of local jobs: their texts, written and read by tables of fields, and what others see of them,
 * which are the snapshot that is published and the names of the logs.
 */
#include "spec/record/record.h"

#include <errno.h>
#include <limits.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/tree.h"
#include "spec/yaml/field.h"
#include "spec/yaml/yaml.h"

#define RECORD_VERSION 2

/* Logs of all replicas and attempts: each becomes a file of the job's directory. */
#define RECORD_MAX_LOGS 1000000

#define JOB(name, type, ...)	 SPEC_FIELD(struct spec_record, name, type, __VA_ARGS__)
#define REPLICA(name, type, ...) SPEC_FIELD(struct spec_record_replica, name, type, __VA_ARGS__)

static const struct spec_field job_fields[] = {
	JOB(id, SPEC_FIELD_TEXT),
	JOB(uid, SPEC_FIELD_TEXT),
	JOB(submitter, SPEC_FIELD_TEXT, .optional = true),
	JOB(submission, SPEC_FIELD_TEXT, .optional = true),
	JOB(file, SPEC_FIELD_TEXT, .optional = true),
	JOB(work_dir, SPEC_FIELD_TEXT, .optional = true),
	JOB(state, SPEC_FIELD_WORD, .words = spec_state_words),
	JOB(phase, SPEC_FIELD_TEXT),
	JOB(reason, SPEC_FIELD_TEXT, .optional = true),
	JOB(message, SPEC_FIELD_TEXT, .optional = true),
	JOB(history, SPEC_FIELD_BOOL),
	JOB(suspended, SPEC_FIELD_BOOL),
	JOB(retries, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	JOB(created, SPEC_FIELD_TIME),
	JOB(started, SPEC_FIELD_TIME),
	JOB(finished, SPEC_FIELD_TIME),
	JOB(changed, SPEC_FIELD_TIME),
};

static const struct spec_field replica_fields[] = {
	REPLICA(role, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	REPLICA(id, SPEC_FIELD_UNSIGNED, .max = SPEC_MAX_REPLICAS - 1),
	REPLICA(state, SPEC_FIELD_WORD, .words = spec_state_words),
	REPLICA(attempt, SPEC_FIELD_UNSIGNED, .max = RECORD_MAX_LOGS),
	REPLICA(exit_code, SPEC_FIELD_INT, .min = -1, .max = 255),
	REPLICA(signal, SPEC_FIELD_INT, .max = 127),
	REPLICA(started, SPEC_FIELD_TIME),
	REPLICA(finished, SPEC_FIELD_TIME),
	REPLICA(reason, SPEC_FIELD_TEXT, .optional = true),
	REPLICA(message, SPEC_FIELD_TEXT, .optional = true),
};

/* What only kxfs is to know. */
static const struct spec_field job_private[] = {
	JOB(goal, SPEC_FIELD_UNSIGNED, .max = SPEC_GOAL_STOP),
	JOB(again, SPEC_FIELD_BOOL),
	JOB(boot, SPEC_FIELD_TEXT, .optional = true),
	JOB(last_words, SPEC_FIELD_TEXT, .optional = true),
	JOB(dropped, SPEC_FIELD_BOOL, .optional = true),
};

static const struct spec_field replica_private[] = {
	REPLICA(ended, SPEC_FIELD_BOOL),
	REPLICA(again, SPEC_FIELD_BOOL),
	REPLICA(restarts, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
};

/* --- a record --- */

struct spec_record *spec_record_new(struct spec_app *app)
{
	struct spec_record *r = new0(struct spec_record);
	size_t n = 0;

	r->app = app;
	for (size_t i = 0; i < app->n_roles; i++)
		n += (size_t)app->roles[i].num_replicas;
	r->replicas = new0_n(struct spec_record_replica, n);
	r->state = SPEC_PENDING;
	r->boot = r->last_words = spec_empty();
	for (size_t i = 0; i < array_size(job_fields); i++)
		if (job_fields[i].type == SPEC_FIELD_TEXT)
			spec_set((char **)((char *)r + job_fields[i].at), "");
	spec_set(&r->phase, "Pending");
	for (size_t i = 0; i < app->n_roles; i++) {
		for (int64_t k = 0; k < app->roles[i].num_replicas; k++)
			r->replicas[r->n_replicas++] = (struct spec_record_replica){
				.role = (unsigned)i,
				.id = (unsigned)k,
				.state = SPEC_PENDING,
				.exit_code = -1,
				.reason = spec_empty(),
				.message = spec_empty(),
			};
	}
	return r;
}

void spec_record_free(struct spec_record *r)
{
	if (!r)
		return;
	spec_fields_unset(job_fields, array_size(job_fields), r);
	spec_fields_unset(job_private, array_size(job_private), r);
	for (size_t i = 0; i < r->n_replicas; i++)
		spec_fields_unset(replica_fields, array_size(replica_fields), &r->replicas[i]);
	free(r->replicas);
	spec_transitions_clear(&r->transitions);
	spec_app_free(r->app);
	free(r);
}

void spec_record_begin(struct spec_record *r, const struct spec_record_origin *o)
{
	r->created = r->changed = o->created;
	r->state = SPEC_PENDING;
	spec_set(&r->id, o->id);
	spec_set(&r->uid, o->uid);
	spec_set(&r->submission, o->submission);
	spec_set(&r->submitter, o->submitter);
	spec_set(&r->file, o->file);
	spec_set(&r->work_dir, o->work_dir);
	spec_set(&r->boot, o->boot);
	spec_set(&r->phase, "Pending");
	spec_transitions_add(&r->transitions, SPEC_PENDING, "Pending", o->created);
}

static void record_freep(struct spec_record **r)
{
	spec_record_free(*r);
}

/* --- out --- */

static struct json_object *record_tree(const struct spec_record *r, bool people)
{
	cleanup_free char *app = spec_app_json(r->app);
	struct json_object *root = spec_tree_map(), *list;

	if (!people)
		spec_tree_number(root, "version", RECORD_VERSION);
	spec_fields_write(root, job_fields, array_size(job_fields), r, people);
	if (!people) {
		spec_fields_write(root, job_private, array_size(job_private), r, false);
		spec_transitions_write(root, &r->transitions);
	}
	spec_tree_add(root, "app", spec_tree_parse(app));
	list = spec_tree_add(root, "replicas", spec_tree_list(r->n_replicas));
	for (size_t i = 0; i < r->n_replicas; i++) {
		struct json_object *o = spec_tree_append(list, spec_tree_map());

		spec_fields_write(o, replica_fields, array_size(replica_fields), &r->replicas[i],
				  people);
		if (!people)
			spec_fields_write(o, replica_private, array_size(replica_private),
					  &r->replicas[i], false);
	}
	return root;
}

char *spec_record_text(const struct spec_record *r)
{
	cleanup_json struct json_object *root = record_tree(r, false);
	char *ret = spec_tree_print(root);

	text_set(&ret, "%s\n", ret);
	return ret;
}

void spec_record_yaml(const struct spec_record *r, char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *root = record_tree(r, true);

	spec_yaml_emit(root, 0, ret, ret_len);
}

/* --- in --- */

/* The replicas must be those that the AppDef asks for, in order, as spec_record_new made them. */
static int read_replicas(const struct spec_value *root, struct spec_record *r)
{
	const struct spec_value *list = spec_read_list(root, "replicas");
	size_t logs = 0;

	if (!list || list->n != r->n_replicas)
		return -EINVAL;
	for (size_t i = 0; i < r->n_replicas; i++) {
		struct spec_record_replica *rep = &r->replicas[i];
		unsigned role = rep->role, id = rep->id;
		const struct spec_value *o = &list->items[i];
		int err = spec_fields_read(o, replica_fields, array_size(replica_fields), rep);

		if (err == 0)
			err = spec_fields_read(o, replica_private, array_size(replica_private),
					       rep);
		if (err < 0)
			return err;
		logs += rep->attempt + 1;
		if (rep->role != role || rep->id != id || logs > RECORD_MAX_LOGS)
			return -EINVAL;
	}
	return 0;
}

/*
 * The AppDef was accepted when it was submitted, perhaps by an earlier version whose rules were others. With defaults
 * filled in it may also be larger than what is accepted as a file.
 */
static int read_app(const struct spec_value *root, struct spec_app **ret)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free struct spec_yaml *tree = NULL;
	const struct spec_value *its = spec_read_member(root, "app");
	struct json_object *app cleanup_json = its ? spec_tree_of(its) : NULL;

	if (!its)
		return -EINVAL;
	tree = spec_yaml_of_json(app);
	return spec_app_read(tree, NULL, ret, &e) < 0 ? -EINVAL : 0;
}

static int record_of(const struct spec_value *root, struct spec_record **ret)
{
	cleanup(record_freep) struct spec_record *r = NULL;
	struct spec_app *app = NULL;
	int err = spec_fields_version(root, RECORD_VERSION);

	if (err == 0)
		err = read_app(root, &app);
	if (err < 0)
		return err;
	r = spec_record_new(app);
	err = spec_fields_read(root, job_fields, array_size(job_fields), r);
	if (err == 0)
		err = spec_fields_read(root, job_private, array_size(job_private), r);
	if (err == 0 && (!spec_name_is_file(r->id) || !*r->uid))
		err = -EINVAL;
	if (err == 0)
		err = spec_transitions_read(root, &r->transitions);
	if (err == 0)
		err = read_replicas(root, r);
	if (err == 0)
		*ret = take_ptr(r);
	return err;
}

int spec_record_parse(const char *text, size_t len, struct spec_record **ret)
{
	struct spec_value *root cleanup_free = NULL;
	int err = spec_value_parse(text, len, &root);

	return err < 0 ? err : record_of(root, ret);
}

/* --- what others see --- */

static const struct spec_role *role_of(const struct spec_record *r,
				       const struct spec_record_replica *rep)
{
	return &r->app->roles[rep->role];
}

char *spec_record_log_key(const struct spec_record *r, const struct spec_record_replica *rep,
			  unsigned attempt)
{
	cleanup_free char *dir = spec_name_replica_dir(role_of(r, rep)->name, rep->id);

	return text_print("%s.%u", dir, attempt);
}

char *spec_record_log_prefix(const struct spec_record *r, const struct spec_record_replica *rep)
{
	cleanup_free char *dir = spec_name_replica_dir(role_of(r, rep)->name, rep->id);

	/* The role is taken from the directory: a name as it was written may hold a line break. */
	*strrchr(dir, '-') = '\0';
	return text_print("%s/%u ", dir, rep->id);
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

static void fill_replica(struct spec_replica *to, const struct spec_record *r,
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
	spec_set(&to->name, dir);
	spec_set(&to->reason, rep->reason);
	spec_set(&to->message, rep->message);
	for (unsigned i = 0; i <= rep->attempt; i++) {
		cleanup_free char *key = spec_record_log_key(r, rep, i);

		spec_replica_add_log(to, key, "");
	}
}

static void fill_roles(struct spec_job *job, const struct spec_record *r)
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
		spec_set(&to->name, from->name);
	}
}

struct spec_job *spec_record_job(const struct spec_record *r)
{
	struct spec_job *job = spec_job_new(r->app->n_roles, r->n_replicas);

	spec_set(&job->id, r->id);
	spec_set(&job->uid, r->uid);
	spec_set(&job->app, r->app->name);
	spec_set(&job->phase, r->phase);
	spec_set(&job->reason, r->reason);
	spec_set(&job->message, r->message);
	spec_set(&job->last_words, r->last_words);
	spec_set(&job->backend, "local");
	spec_set(&job->submitter, r->submitter);
	spec_set(&job->submission, r->submission);
	job->state = r->suspended ? SPEC_CANCELLED : r->state;
	job->own = true;
	job->has_appdef = true;
	job->history = r->history;
	job->suspended = r->suspended;
	job->dropped = r->dropped;
	job->retries = r->retries;
	job->created = r->created;
	job->started = r->started;
	job->finished = r->finished;
	job->changed = r->changed;
	job->actions = actions_of(r);
	spec_transitions_copy(&job->transitions, &r->transitions);
	fill_roles(job, r);
	for (size_t i = 0; i < r->n_replicas; i++)
		fill_replica(&job->replicas[i], r, &r->replicas[i]);
	return spec_job_pack(job);
}
