/* SPDX-License-Identifier: MIT */
/*
 * Writes snapshots to disk, and reads them. A snapshot contains the JSON of the cluster's object as
 * one string, not as a tree: the server may send any JSON.
 */
#include "spec/job/status.h"

#include <errno.h>
#include <limits.h>

#include "spec/base/limits.h"
#include "spec/base/name.h"
#include "spec/base/utf8.h"
#include "spec/job/job_tree.h"
#include "spec/yaml/field.h"

#define SNAPSHOT_VERSION  2
#define SNAPSHOT_MAX_LOGS 100000 /* of a replica */
/* Larger numbers are invalid, because JSON parsers may round them. */
#define USAGE_MAX (INT64_C(1) << 53)

#define JOB(name, type, ...)	 SPEC_FIELD(struct spec_job, name, type, __VA_ARGS__)
#define ROLE(name, type, ...)	 SPEC_FIELD(struct spec_role_status, name, type, __VA_ARGS__)
#define REPLICA(name, type, ...) SPEC_FIELD(struct spec_replica, name, type, __VA_ARGS__)
#define REQUEST(name)                                                                              \
	SPEC_FIELD(struct spec_request, name, SPEC_FIELD_INT64, .min = -1, .max = USAGE_MAX)
#define USAGE(name)                                                                                \
	SPEC_FIELD(struct spec_usage, name, SPEC_FIELD_INT64, .min = -1, .max = USAGE_MAX)
#define LOG(name, type, ...) SPEC_FIELD(struct spec_log, name, type, __VA_ARGS__)

static const struct spec_field job_fields[] = {
	JOB(id, SPEC_FIELD_TEXT),
	JOB(uid, SPEC_FIELD_TEXT),
	JOB(app, SPEC_FIELD_TEXT, .optional = true),
	JOB(state, SPEC_FIELD_WORD, .words = spec_state_words),
	JOB(phase, SPEC_FIELD_TEXT),
	JOB(reason, SPEC_FIELD_TEXT, .optional = true),
	JOB(message, SPEC_FIELD_TEXT, .optional = true),
	JOB(obstacle, SPEC_FIELD_TEXT, .optional = true),
	JOB(last_words, SPEC_FIELD_TEXT, .optional = true),
	JOB(silent, SPEC_FIELD_BOOL, .optional = true),
	JOB(backend, SPEC_FIELD_TEXT, .optional = true),
	JOB(namespace, SPEC_FIELD_TEXT, .optional = true),
	JOB(owner, SPEC_FIELD_TEXT, .optional = true),
	JOB(queue, SPEC_FIELD_TEXT, .optional = true),
	JOB(cluster_queue, SPEC_FIELD_TEXT, .optional = true),
	JOB(flavors, SPEC_FIELD_TEXT, .optional = true),
	JOB(priority_class, SPEC_FIELD_TEXT, .optional = true),
	JOB(priority, SPEC_FIELD_INT, .min = INT_MIN, .max = INT_MAX, .optional = true),
	JOB(submitter, SPEC_FIELD_TEXT, .optional = true),
	JOB(submission, SPEC_FIELD_TEXT, .optional = true),
	JOB(own, SPEC_FIELD_BOOL),
	JOB(has_appdef, SPEC_FIELD_BOOL),
	JOB(history, SPEC_FIELD_BOOL),
	JOB(suspended, SPEC_FIELD_BOOL),
	JOB(given_up, SPEC_FIELD_BOOL, .optional = true),
	JOB(exact, SPEC_FIELD_BOOL, .optional = true),
	JOB(uncounted, SPEC_FIELD_BOOL, .optional = true),
	JOB(dropped, SPEC_FIELD_BOOL, .optional = true),
	JOB(retries, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	JOB(max_retries, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	JOB(evictions, SPEC_FIELD_UNSIGNED, .max = INT32_MAX, .optional = true),
	JOB(time_limit, SPEC_FIELD_INT, .max = INT32_MAX, .optional = true),
	JOB(ttl, SPEC_FIELD_INT, .min = -1, .max = SPEC_MAX_LIMIT, .optional = true),
	JOB(created, SPEC_FIELD_TIME),
	JOB(started, SPEC_FIELD_TIME),
	JOB(finished, SPEC_FIELD_TIME),
	JOB(changed, SPEC_FIELD_TIME),
	{0},
};

static const struct spec_field role_fields[] = {
	ROLE(name, SPEC_FIELD_TEXT),
	ROLE(desired, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	ROLE(minimum, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	{0},
};

static const struct spec_field replica_fields[] = {
	REPLICA(name, SPEC_FIELD_TEXT),
	REPLICA(role, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	REPLICA(id, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	REPLICA(state, SPEC_FIELD_WORD, .words = spec_state_words),
	REPLICA(pod, SPEC_FIELD_TEXT, .optional = true),
	REPLICA(node, SPEC_FIELD_TEXT, .optional = true),
	REPLICA(reason, SPEC_FIELD_TEXT, .optional = true),
	REPLICA(message, SPEC_FIELD_TEXT, .optional = true),
	REPLICA(blamed, SPEC_FIELD_TEXT, .optional = true),
	REPLICA(attempt, SPEC_FIELD_UNSIGNED, .max = UINT_MAX),
	REPLICA(starts, SPEC_FIELD_UNSIGNED, .max = UINT_MAX, .optional = true),
	REPLICA(last_code, SPEC_FIELD_INT, .min = INT_MIN, .max = INT_MAX, .optional = true),
	REPLICA(exit_code, SPEC_FIELD_INT, .min = INT_MIN, .max = INT_MAX),
	REPLICA(signal, SPEC_FIELD_INT, .max = INT_MAX),
	REPLICA(gpus, SPEC_FIELD_UINT64, .optional = true),
	REPLICA(started, SPEC_FIELD_TIME),
	REPLICA(finished, SPEC_FIELD_TIME),
	{0},
};

static const struct spec_field log_fields[] = {
	LOG(key, SPEC_FIELD_TEXT),
	LOG(container, SPEC_FIELD_TEXT),
	LOG(complete, SPEC_FIELD_BOOL, .optional = true),
	LOG(gap, SPEC_FIELD_UINT64),
	LOG(lost_end, SPEC_FIELD_BOOL, .optional = true),
	{0},
};

static const struct spec_field request_fields[] = {
	REQUEST(cpu), REQUEST(memory), REQUEST(memory_limit), REQUEST(gpu), {0},
};

static const struct spec_field usage_fields[] = {
	SPEC_FIELD(struct spec_usage, source, SPEC_FIELD_UNSIGNED, .max = SPEC_N_USAGE_SOURCES - 1),
	USAGE(cpu_us),
	USAGE(cpu_now),
	USAGE(memory_now),
	USAGE(memory_peak),
	USAGE(samples),
	SPEC_FIELD(struct spec_usage, first, SPEC_FIELD_TIME),
	SPEC_FIELD(struct spec_usage, last, SPEC_FIELD_TIME),
	{0},
};

struct json_object *spec_snapshot_tree(const struct spec_job *job, enum spec_snapshot_form form)
{
	struct json_object *root = spec_tree_map(), *list;

	spec_fields_write(root, job_fields, job);
	spec_transitions_write(root, &job->transitions);
	list = spec_tree_add(root, "roles", spec_tree_list(job->n_roles));
	for (size_t i = 0; i < job->n_roles; i++) {
		const struct spec_role_status *role = &job->roles[i];
		struct json_object *o = spec_tree_append(list, spec_tree_map());

		spec_fields_write(o, role_fields, role);
		if (role->request)
			spec_fields_write(spec_tree_add(o, "request", spec_tree_map()),
					  request_fields, role->request);
	}
	list = spec_tree_add(root, "replicas", spec_tree_list(job->n_replicas));
	for (size_t i = 0; i < job->n_replicas; i++) {
		struct json_object *o = spec_tree_append(list, spec_tree_map()), *logs;
		const struct spec_replica *r = &job->replicas[i];

		spec_fields_write(o, replica_fields, r);
		if (r->usage)
			spec_fields_write(spec_tree_add(o, "usage", spec_tree_map()), usage_fields,
					  r->usage);
		if (form != SPEC_SNAPSHOT_WHOLE)
			continue;
		logs = spec_tree_add(o, "logs", spec_tree_list(r->n_logs));
		for (size_t k = 0; k < r->n_logs; k++)
			spec_fields_write(spec_tree_append(logs, spec_tree_map()), log_fields,
					  &r->logs[k]);
	}
	return root;
}

char *spec_snapshot_text(const struct spec_job *job)
{
	cleanup_json struct json_object *root = spec_snapshot_tree(job, SPEC_SNAPSHOT_WHOLE);
	cleanup_free char *text = NULL;

	spec_tree_number(root, "version", SNAPSHOT_VERSION);
	if (job->object)
		spec_tree_add(root, "object", spec_tree_bytes(job->object->text, job->object->len));
	text = spec_tree_print(root);
	return text_print("%s\n", text);
}

static int read_logs(const struct spec_value *o, struct spec_replica *r)
{
	const struct spec_value *list = spec_read_list(o, "logs");

	if (!list || list->n > SNAPSHOT_MAX_LOGS)
		return -EINVAL;
	for (size_t i = 0; i < list->n; i++) {
		struct spec_log log = {0};
		int err = spec_fields_read(&list->items[i], log_fields, &log);

		if (err == 0)
			err = spec_name_is_file(log.key) ? 0 : -EINVAL;
		if (err == 0)
			spec_replica_copy_log(r, &log);
		spec_fields_unset(log_fields, &log);
		if (err < 0)
			return err;
	}
	return 0;
}

static int read_role(const struct spec_value *o, struct spec_role_status *role)
{
	const struct spec_value *request;
	struct spec_request given;
	int err = spec_fields_read(o, role_fields, role);

	if (err < 0 || !(request = spec_read_member(o, "request")))
		return err;
	err = spec_fields_read(request, request_fields, &given);
	if (err == 0)
		spec_role_set_request(role, &given);
	return err;
}

static int read_usage(const struct spec_value *o, struct spec_replica *r)
{
	const struct spec_value *usage = spec_read_member(o, "usage");
	struct spec_usage used;
	int err = usage ? spec_fields_read(usage, usage_fields, &used) : 0;

	if (usage && err == 0)
		spec_replica_set_usage(r, &used);
	return err;
}

/* Read the replicas, which must be in the order of their roles. */
static int read_replicas(const struct spec_value *list, enum spec_snapshot_form form,
			 struct spec_job *job)
{
	unsigned role = 0;

	for (size_t i = 0; i < job->n_replicas; i++) {
		struct spec_replica *r = &job->replicas[i];
		int err = spec_fields_read(&list->items[i], replica_fields, r);

		if (err == 0)
			err = read_usage(&list->items[i], r);
		if (err == 0 && form == SPEC_SNAPSHOT_WHOLE)
			err = read_logs(&list->items[i], r);
		if (err < 0)
			return err;
		if (r->role < role || r->role >= job->n_roles || !spec_name_is_file(r->name))
			return -EINVAL;
		if (r->role > role || i == 0)
			job->roles[r->role].first = (unsigned)i;
		role = r->role;
		job->roles[role].n++;
	}
	return 0;
}

int spec_snapshot_of(const struct spec_value *root, enum spec_snapshot_form form,
		     struct spec_job **ret)
{
	const struct spec_value *roles = spec_read_list(root, "roles");
	const struct spec_value *replicas = spec_read_list(root, "replicas");
	cleanup_job struct spec_job *job = NULL;
	int err;

	if (!roles || roles->n > SPEC_MAX_REPLICAS || !replicas || replicas->n > SPEC_MAX_REPLICAS)
		return -EINVAL;
	job = spec_job_new(roles->n, replicas->n);
	err = spec_fields_read(root, job_fields, job);
	if (err == 0)
		err = spec_transitions_read(root, &job->transitions);
	for (size_t i = 0; i < job->n_roles && err == 0; i++)
		err = read_role(&roles->items[i], &job->roles[i]);
	if (err == 0)
		err = read_replicas(replicas, form, job);
	if (err == 0 && (!spec_name_is_file(job->id) || !*job->uid))
		err = -EINVAL;
	if (err == 0)
		*ret = take_ptr(job);
	return err;
}

int spec_snapshot_parse(const char *text, size_t len, struct spec_job **ret)
{
	cleanup_free struct spec_value *root = NULL;
	cleanup_job struct spec_job *job = NULL;
	const struct spec_value *object;
	int err = spec_value_parse(text, len, &root), version;

	if (err < 0)
		return err;
	version = spec_read_int(root, "version", -1);
	if (version != SNAPSHOT_VERSION)
		return version < 0 ? -EINVAL : -ENOTSUP;
	err = spec_snapshot_of(root, SPEC_SNAPSHOT_WHOLE, &job);
	if (err < 0)
		return err;
	object = spec_read_member(root, "object");
	if (object && (object->type != SPEC_VALUE_STRING || !spec_utf8_is(object->text, object->n)))
		return -EINVAL;
	if (object)
		job->object = spec_text_new(object->text, object->n);
	*ret = spec_job_pack(take_ptr(job));
	return 0;
}
