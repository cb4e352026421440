/* SPDX-License-Identifier: MIT */
/*
 * Records of local jobs, as tables of fields.
 */
#include "spec/record.h"

#include <errno.h>
#include <limits.h>

#include "spec/field.h"
#include "spec/limits.h"
#include "spec/name.h"
#include "spec/record_app.h"
#include "spec/tree.h"
#include "spec/yaml.h"

#define RECORD_VERSION 1

/* Logs of all replicas and attempts: each becomes a file of the job's directory. */
#define RECORD_MAX_LOGS 1000000

/* What lies around the AppDef is not deeper than this. */
#define RECORD_DEPTH 8

#define JOB(name, type, ...)	 SPEC_FIELD(struct spec_record, name, type, __VA_ARGS__)
#define REPLICA(name, type, ...) SPEC_FIELD(struct spec_record_replica, name, type, __VA_ARGS__)

static const struct spec_field job_fields[] = {
	JOB(id, SPEC_FIELD_TEXT),
	JOB(uid, SPEC_FIELD_TEXT),
	JOB(submitter, SPEC_FIELD_TEXT, .optional = true),
	JOB(submission, SPEC_FIELD_TEXT, .optional = true),
	JOB(file, SPEC_FIELD_TEXT, .optional = true),
	JOB(work_dir, SPEC_FIELD_TEXT, .optional = true),
	JOB(state, SPEC_FIELD_STATE),
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
	REPLICA(state, SPEC_FIELD_STATE),
	REPLICA(attempt, SPEC_FIELD_UNSIGNED, .max = RECORD_MAX_LOGS),
	REPLICA(pid, SPEC_FIELD_INT64, .max = INT_MAX),
	REPLICA(pid_start, SPEC_FIELD_UINT64),
	REPLICA(exit_code, SPEC_FIELD_INT, .min = -1, .max = 255),
	REPLICA(signal, SPEC_FIELD_INT, .max = 127),
	REPLICA(started, SPEC_FIELD_TIME),
	REPLICA(finished, SPEC_FIELD_TIME),
	REPLICA(reason, SPEC_FIELD_TEXT, .optional = true),
	REPLICA(message, SPEC_FIELD_TEXT, .optional = true),
};

/* --- a record --- */

struct spec_record *spec_record_new(struct spec_app *app)
{
	struct spec_record *r = calloc(1, sizeof(*r));
	size_t n = 0;

	if (!r) {
		spec_app_free(app);
		return NULL;
	}
	r->app = app;
	for (size_t i = 0; i < app->n_roles; i++)
		n += (size_t)app->roles[i].num_replicas;
	r->replicas = calloc(n ? n : 1, sizeof(*r->replicas));
	if (!r->replicas)
		goto no_memory;
	r->n_replicas = n;
	r->state = SPEC_PENDING;
	for (size_t i = 0; i < array_size(job_fields); i++)
		if (job_fields[i].type == SPEC_FIELD_TEXT &&
		    spec_set((char **)((char *)r + job_fields[i].at), "") < 0)
			goto no_memory;
	if (spec_set(&r->phase, "Pending") < 0)
		goto no_memory;
	n = 0;
	for (size_t i = 0; i < app->n_roles; i++) {
		for (int64_t k = 0; k < app->roles[i].num_replicas; k++) {
			struct spec_record_replica *rep = &r->replicas[n++];

			rep->role = (unsigned)i;
			rep->id = (unsigned)k;
			rep->state = SPEC_PENDING;
			rep->exit_code = -1;
			if (spec_set(&rep->reason, "") < 0 || spec_set(&rep->message, "") < 0)
				goto no_memory;
		}
	}
	return r;
no_memory:
	spec_record_free(r);
	return NULL;
}

void spec_record_free(struct spec_record *r)
{
	if (!r)
		return;
	spec_fields_unset(job_fields, array_size(job_fields), r);
	for (size_t i = 0; i < r->n_replicas; i++)
		spec_fields_unset(replica_fields, array_size(replica_fields), &r->replicas[i]);
	free(r->replicas);
	spec_transitions_clear(&r->transitions);
	spec_app_free(r->app);
	free(r);
}

int spec_record_begin(struct spec_record *r, const struct spec_record_origin *o)
{
	const struct {
		char **field;
		const char *value;
	} texts[] = {
		{&r->id, o->id},
		{&r->uid, o->uid},
		{&r->submission, o->submission},
		{&r->submitter, o->submitter},
		{&r->file, o->file},
		{&r->work_dir, o->work_dir},
		{&r->phase, "Pending"},
	};

	r->created = r->changed = o->created;
	r->state = SPEC_PENDING;
	for (size_t i = 0; i < array_size(texts); i++) {
		if (spec_set(texts[i].field, texts[i].value) < 0)
			return -ENOMEM;
	}
	return spec_transitions_add(&r->transitions, SPEC_PENDING, "Pending", o->created);
}

static void record_freep(struct spec_record **r)
{
	spec_record_free(*r);
}

/* --- out --- */

static struct json_object *app_tree(const struct spec_app *app)
{
	cleanup_free char *text = spec_app_json(app);
	struct json_tokener *tok = json_tokener_new_ex(SPEC_MAX_DEPTH + RECORD_DEPTH);
	struct json_object *ret = NULL;

	if (tok && text)
		ret = json_tokener_parse_ex(tok, text, -1);
	if (tok)
		json_tokener_free(tok);
	return ret;
}

static struct json_object *record_tree(const struct spec_record *r, bool people)
{
	cleanup_json struct json_object *root = json_object_new_object();
	struct spec_tree t = {0};
	struct json_object *list;

	if (!people)
		spec_tree_number(&t, root, "version", RECORD_VERSION);
	spec_fields_write(&t, root, job_fields, array_size(job_fields), r, people);
	if (!people)
		spec_transitions_write(&t, root, &r->transitions);
	spec_tree_add(&t, root, "app", app_tree(r->app));
	list = spec_tree_add(&t, root, "replicas",
			     json_object_new_array_ext((int)max_of(r->n_replicas, (size_t)1)));
	for (size_t i = 0; i < r->n_replicas; i++) {
		struct json_object *o = spec_tree_append(&t, list, json_object_new_object());

		spec_fields_write(&t, o, replica_fields, array_size(replica_fields),
				  &r->replicas[i], people);
	}
	return t.failed ? NULL : take_ptr(root);
}

char *spec_record_text(const struct spec_record *r)
{
	cleanup_json struct json_object *root = record_tree(r, false);
	const char *text;
	char *ret;

	if (!root)
		return NULL;
	text = json_object_to_json_string_ext(root, JSON_C_TO_STRING_PLAIN |
							    JSON_C_TO_STRING_NOSLASHESCAPE);
	if (!text || asprintf(&ret, "%s\n", text) < 0)
		return NULL;
	return ret;
}

int spec_record_yaml(const struct spec_record *r, char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *root = record_tree(r, true);

	return root ? spec_yaml_emit(root, 0, ret, ret_len) : -ENOMEM;
}

/* --- in --- */

/* The replicas must be those that the AppDef asks for, in order, as spec_record_new made them. */
static int read_replicas(struct json_object *root, struct spec_record *r)
{
	struct json_object *list;
	size_t logs = 0;

	if (!json_object_object_get_ex(root, "replicas", &list) ||
	    !json_object_is_type(list, json_type_array) ||
	    json_object_array_length(list) != r->n_replicas)
		return -EINVAL;
	for (size_t i = 0; i < r->n_replicas; i++) {
		struct spec_record_replica *rep = &r->replicas[i];
		unsigned role = rep->role, id = rep->id;
		int err = spec_fields_read(json_object_array_get_idx(list, i), replica_fields,
					   array_size(replica_fields), rep);

		if (err < 0)
			return err;
		logs += rep->attempt + 1;
		if (rep->role != role || rep->id != id || logs > RECORD_MAX_LOGS)
			return -EINVAL;
	}
	return 0;
}

static int record_of_tree(struct json_object *root, struct spec_record **ret)
{
	cleanup(record_freep) struct spec_record *r = NULL;
	struct spec_app *app = NULL;
	struct json_object *v;
	int err = spec_fields_version(root, RECORD_VERSION);

	if (err < 0)
		return err;
	if (!json_object_object_get_ex(root, "app", &v))
		return -EINVAL;
	err = spec_record_app(v, &app);
	if (err < 0)
		return err;
	r = spec_record_new(app);
	if (!r)
		return -ENOMEM;
	err = spec_fields_read(root, job_fields, array_size(job_fields), r);
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
	cleanup_json struct json_object *root = NULL;
	int err = spec_fields_parse(text, len, SPEC_MAX_DEPTH + RECORD_DEPTH, &root);

	return err < 0 ? err : record_of_tree(root, ret);
}
