/* SPDX-License-Identifier: MIT */
/*
 * Records of local jobs. One table says for each field of a record its name in job.json, its type
 * and its range; writing and reading both go by it, so they can't differ.
 */
#include "spec/record.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>

#include "spec/limits.h"
#include "spec/name.h"
#include "spec/record_app.h"
#include "spec/status.h"
#include "spec/tree.h"
#include "spec/yaml.h"

#define RECORD_VERSION 1

/* Logs of all replicas and attempts: each becomes a file of the job's directory. */
#define RECORD_MAX_LOGS 1000000

/* What lies around the AppDef is not deeper than this. */
#define RECORD_DEPTH 8

enum type { TEXT, STATE, BOOL, INT, UNSIGNED, INT64, UINT64, TIME };

struct field {
	const char *key;
	enum type type;
	size_t at;
	int64_t min, max; /* INT, UNSIGNED, INT64 */
};

#define JOB(name, type, ...)                                                                       \
	{                                                                                          \
#name, type, offsetof(struct spec_record, name), __VA_ARGS__                       \
	}
#define REPLICA(name, type, ...)                                                                   \
	{                                                                                          \
#name, type, offsetof(struct spec_record_replica, name), __VA_ARGS__               \
	}

static const struct field job_fields[] = {
	JOB(id, TEXT, 0, 0),
	JOB(uid, TEXT, 0, 0),
	JOB(submitter, TEXT, 0, 0),
	JOB(submission, TEXT, 0, 0),
	JOB(file, TEXT, 0, 0),
	JOB(work_dir, TEXT, 0, 0),
	JOB(state, STATE, 0, 0),
	JOB(phase, TEXT, 0, 0),
	JOB(reason, TEXT, 0, 0),
	JOB(message, TEXT, 0, 0),
	JOB(history, BOOL, 0, 0),
	JOB(suspended, BOOL, 0, 0),
	JOB(retries, UNSIGNED, 0, UINT_MAX),
	JOB(created, TIME, 0, 0),
	JOB(started, TIME, 0, 0),
	JOB(finished, TIME, 0, 0),
	JOB(changed, TIME, 0, 0),
};

static const struct field replica_fields[] = {
	REPLICA(role, UNSIGNED, 0, UINT_MAX), REPLICA(id, UNSIGNED, 0, SPEC_MAX_REPLICAS - 1),
	REPLICA(state, STATE, 0, 0),	      REPLICA(attempt, UNSIGNED, 0, RECORD_MAX_LOGS),
	REPLICA(pid, INT64, 0, INT_MAX),      REPLICA(pid_start, UINT64, 0, 0),
	REPLICA(exit_code, INT, -1, 255),     REPLICA(signal, INT, 0, 127),
	REPLICA(started, TIME, 0, 0),	      REPLICA(finished, TIME, 0, 0),
	REPLICA(reason, TEXT, 0, 0),	      REPLICA(message, TEXT, 0, 0),
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
		if (job_fields[i].type == TEXT &&
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

static void unset_texts(const struct field *fields, size_t n, void *base)
{
	for (size_t i = 0; i < n; i++)
		if (fields[i].type == TEXT)
			spec_unset((char **)((char *)base + fields[i].at));
}

void spec_record_free(struct spec_record *r)
{
	if (!r)
		return;
	unset_texts(job_fields, array_size(job_fields), r);
	for (size_t i = 0; i < r->n_replicas; i++)
		unset_texts(replica_fields, array_size(replica_fields), &r->replicas[i]);
	free(r->replicas);
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
	return 0;
}

static void record_freep(struct spec_record **r)
{
	spec_record_free(*r);
}

/* --- out --- */

/* For people, a time is a date; a program wants the whole number back. */
static void write_time(struct spec_tree *t, struct json_object *o, const char *key, int64_t ns,
		       bool people)
{
	char text[32];

	if (!people) {
		spec_tree_number(t, o, key, ns);
	} else if (ns == 0) {
		spec_tree_null(t, o, key);
	} else {
		spec_time_text(ns, text);
		spec_tree_add(t, o, key, spec_yaml_new_time(text));
	}
}

static void write_fields(struct spec_tree *t, struct json_object *o, const struct field *fields,
			 size_t n, const void *base, bool people)
{
	for (size_t i = 0; i < n; i++) {
		const char *key = fields[i].key;
		const void *p = (const char *)base + fields[i].at;

		switch (fields[i].type) {
		case TEXT:
			spec_tree_text(t, o, key, *(char *const *)p);
			break;
		case STATE:
			spec_tree_text(t, o, key, spec_state_name(*(const enum spec_state *)p));
			break;
		case BOOL:
			spec_tree_add(t, o, key, json_object_new_boolean(*(const bool *)p));
			break;
		case INT:
			spec_tree_number(t, o, key, *(const int *)p);
			break;
		case UNSIGNED:
			spec_tree_number(t, o, key, *(const unsigned *)p);
			break;
		case INT64:
			spec_tree_number(t, o, key, *(const int64_t *)p);
			break;
		case UINT64:
			spec_tree_add(t, o, key, json_object_new_uint64(*(const uint64_t *)p));
			break;
		case TIME:
			write_time(t, o, key, *(const int64_t *)p, people);
			break;
		}
	}
}

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
	write_fields(&t, root, job_fields, array_size(job_fields), r, people);
	spec_tree_add(&t, root, "app", app_tree(r->app));
	list = spec_tree_add(&t, root, "replicas",
			     json_object_new_array_ext((int)max_of(r->n_replicas, (size_t)1)));
	for (size_t i = 0; i < r->n_replicas; i++) {
		struct json_object *o = spec_tree_append(&t, list, json_object_new_object());

		write_fields(&t, o, replica_fields, array_size(replica_fields), &r->replicas[i],
			     people);
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

static int read_text(struct json_object *v, char **ret)
{
	const char *text;

	if (!json_object_is_type(v, json_type_string))
		return -EINVAL;
	text = json_object_get_string(v);
	if (strlen(text) != (size_t)json_object_get_string_len(v))
		return -EINVAL;
	return spec_set(ret, text);
}

static int read_state(struct json_object *v, enum spec_state *ret)
{
	int state = spec_state_parse(
		json_object_is_type(v, json_type_string) ? json_object_get_string(v) : "");

	if (state < 0)
		return state;
	*ret = (enum spec_state)state;
	return 0;
}

static int read_number(struct json_object *v, const struct field *f, void *p)
{
	int64_t number = json_object_get_int64(v);

	if (!json_object_is_type(v, json_type_int))
		return -EINVAL;
	if (f->type == UINT64) {
		*(uint64_t *)p = json_object_get_uint64(v);
		return number < 0 ? -EINVAL : 0;
	}
	if (f->type == TIME ? number < 0 : number < f->min || number > f->max)
		return -EINVAL;
	if (f->type == INT)
		*(int *)p = (int)number;
	else if (f->type == UNSIGNED)
		*(unsigned *)p = (unsigned)number;
	else
		*(int64_t *)p = number;
	return 0;
}

/* All of FIELDS from the map O. What else O holds is of no matter. */
static int read_fields(struct json_object *o, const struct field *fields, size_t n, void *base)
{
	if (!json_object_is_type(o, json_type_object))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		void *p = (char *)base + fields[i].at;
		struct json_object *v;
		int err = -EINVAL;

		if (!json_object_object_get_ex(o, fields[i].key, &v))
			return -EINVAL;
		if (fields[i].type == TEXT) {
			err = read_text(v, p);
		} else if (fields[i].type == STATE) {
			err = read_state(v, p);
		} else if (fields[i].type != BOOL) {
			err = read_number(v, &fields[i], p);
		} else if (json_object_is_type(v, json_type_boolean)) {
			*(bool *)p = json_object_get_boolean(v);
			err = 0;
		}
		if (err < 0)
			return err;
	}
	return 0;
}

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
		int err = read_fields(json_object_array_get_idx(list, i), replica_fields,
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
	int err;

	if (!json_object_object_get_ex(root, "version", &v) ||
	    !json_object_is_type(v, json_type_int) || json_object_get_int64(v) != RECORD_VERSION ||
	    !json_object_object_get_ex(root, "app", &v))
		return -EINVAL;
	err = spec_record_app(v, &app);
	if (err < 0)
		return err;
	r = spec_record_new(app);
	if (!r)
		return -ENOMEM;
	err = read_fields(root, job_fields, array_size(job_fields), r);
	if (err == 0 && (!spec_name_is_file(r->id) || !*r->uid))
		err = -EINVAL;
	if (err == 0)
		err = read_replicas(root, r);
	if (err == 0)
		*ret = take_ptr(r);
	return err;
}

/* Nothing but white space? */
static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isspace((unsigned char)text[i]))
			return false;
	return true;
}

int spec_record_parse(const char *text, size_t len, struct spec_record **ret)
{
	cleanup_json struct json_object *root = NULL;
	struct json_tokener *tok;
	size_t end;

	if (len > INT_MAX)
		return -EINVAL;
	tok = json_tokener_new_ex(SPEC_MAX_DEPTH + RECORD_DEPTH);
	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8 |
					    JSON_TOKENER_ALLOW_TRAILING_CHARS);
	root = json_tokener_parse_ex(tok, text, (int)len);
	end = json_tokener_get_parse_end(tok);
	json_tokener_free(tok);
	if (!json_object_is_type(root, json_type_object) || !is_blank(text + end, len - end))
		return -EINVAL;
	return record_of_tree(root, ret);
}
