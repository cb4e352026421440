/* SPDX-License-Identifier: MIT */
/* Makes texts of a job's files. status and status.json are made from one tree, so they agree. */
#include "spec/base/time.h"
#include "spec/job/status.h"

#include "spec/base/tree.h"
#include "spec/base/utf8.h"
#include "spec/job/job_tree.h"
#include "spec/yaml/yaml.h"

/* In status, four levels are in block style: job, list of roles, role, and list of replicas. */
#define STATUS_BLOCK_DEPTH 4
/* In usage, only the root is in block style, so related numbers are on one line. */
#define USAGE_BLOCK_DEPTH 1

const char *spec_status_state(enum spec_state state)
{
	static const char *const lines[SPEC_N_STATES] = {SPEC_STATE_WORDS("\n")};

	return lines[state];
}

/* Add the first action of the bit set SET, or null if SET is empty. */
static void put_action(struct json_object *o, const char *key, unsigned set)
{
	spec_tree_text(o, key, set ? spec_action_name((enum spec_action)__builtin_ctz(set)) : NULL);
}

/*
 * Add TEXT, which is untrusted. The writers of JSON and YAML escape most control characters of
 * ASCII. This function escapes the other characters that control a terminal, and bytes that are not
 * UTF-8.
 */
static void put_text(struct json_object *o, const char *key, const char *text)
{
	static const char escaped[] = "\x01\x02\x03\x04\x05\x06\x07\b\t\n\v\f\r\x0e\x0f\x10\x11"
				      "\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f";
	cleanup_free char *clean = NULL;

	if (!spec_utf8_is_clean(text, escaped))
		clean = spec_utf8_clean_copy(text, escaped);
	spec_tree_text(o, key, clean ? clean : text);
}

/*
 * Remove keys without a value that only have a meaning in clusters. This is only for `status` of a
 * local job or replica. status.json is for programs, so it has all keys.
 */
static void drop_unfilled(struct json_object *o)
{
	static const char *const of_clusters[] = {
		"kind",
		"owner",
		"namespace",
		"queue",
		"cluster_queue",
		"flavors",
		"priority_class",
		"priority",
		"queue_position",
		"evictions",
		"stale_since",
		"pending_command",
		"ignored_command",
		"logs_waiting",
		"pod",
		"node",
	};

	for (size_t i = 0; i < array_size(of_clusters); i++) {
		/* json-c converts null, "" and 0 to false. */
		if (!json_object_get_boolean(json_object_object_get(o, of_clusters[i])))
			json_object_object_del(o, of_clusters[i]);
	}
}

static bool is_local(const struct spec_job *job)
{
	return streq(job->backend, "local");
}

static void put_flavors(struct json_object *o, const char *flavors)
{
	struct json_object *list = spec_tree_add(o, "flavors", spec_tree_list(0));
	cleanup_free char *all = text_copy(flavors);
	char *rest = all, *resource, *flavor;

	while ((flavor = strsep(&rest, ",")) && (resource = strsep(&flavor, "=")) && flavor) {
		struct json_object *one = spec_tree_append(list, spec_tree_map());

		put_text(one, "resource", resource);
		put_text(one, "flavor", flavor);
	}
}

static int waiting_of(const struct spec_replica *r)
{
	int n = 0;

	for (size_t i = 0; i < r->n_logs; i++)
		n += r->logs[i].waiting;
	return n;
}

static uint64_t gaps_of(const struct spec_replica *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n_logs; i++)
		n += r->logs[i].gap;
	return n;
}

static void put_replica(struct json_object *o, const struct spec_replica *r)
{
	spec_tree_number(o, "id", r->id);
	put_text(o, "state", spec_state_name(r->state));
	put_text(o, "pod", r->pod);
	put_text(o, "node", r->node);
	spec_tree_number(o, "attempt", r->attempt);
	spec_tree_number_or(o, "exit_code", r->exit_code, -1);
	spec_tree_number_or(o, "signal", r->signal, 0);
	put_text(o, "reason", r->reason);
	put_text(o, "message", r->message);
}

static void put_role(struct json_object *o, const struct spec_job *job,
		     const struct spec_role_status *role, bool brief)
{
	struct json_object *list;
	int64_t n[SPEC_N_STATES] = {0};

	for (size_t i = 0; i < role->n; i++)
		n[job->replicas[role->first + i].state]++;
	put_text(o, "name", role->name);
	spec_tree_number(o, "desired", role->desired);
	spec_tree_number(o, "minimum", role->minimum);
	spec_tree_number(o, "running", n[SPEC_RUNNING]);
	spec_tree_number(o, "waiting", n[SPEC_PENDING]);
	spec_tree_number(o, "succeeded", n[SPEC_SUCCEEDED]);
	spec_tree_number(o, "failed", n[SPEC_FAILED]);
	list = spec_tree_add(o, "replicas", spec_tree_list(role->n));
	for (size_t i = 0; i < role->n; i++) {
		struct json_object *one = spec_tree_append(list, spec_tree_map());
		const struct spec_replica *r = &job->replicas[role->first + i];

		put_replica(one, r);
		if (gaps_of(r))
			spec_tree_add(one, "gap", spec_tree_uint(gaps_of(r)));
		if (brief)
			drop_unfilled(one);
	}
}

static struct json_object *status_tree(const struct spec_job *job, bool brief)
{
	struct json_object *o = spec_tree_map(), *list;
	int64_t waiting = 0, deadline = 0;

	for (size_t i = 0; i < job->n_replicas; i++) {
		const struct spec_replica *r = &job->replicas[i];

		waiting += waiting_of(r);
		if (r->deadline && (!deadline || r->deadline < deadline))
			deadline = r->deadline;
	}
	put_text(o, "id", job->id);
	put_text(o, "app", job->app);
	put_text(o, "state", spec_state_name(job->state));
	put_text(o, "phase", job->phase);
	put_text(o, "reason", *job->cause.reason ? job->cause.reason : job->reason);
	put_text(o, "message", *job->cause.reason ? job->cause.text : job->message);
	put_text(o, "last_words", job->last_words);
	put_text(o, "backend", job->backend);
	put_text(o, "kind", is_local(job) ? "" : job->backend);
	put_text(o, "owner", job->owner);
	put_text(o, "namespace", job->namespace);
	put_text(o, "queue", job->queue);
	put_text(o, "cluster_queue", job->cluster_queue);
	put_flavors(o, job->flavors);
	put_text(o, "priority_class", job->priority_class);
	spec_tree_number_or(o, "priority", job->priority, SPEC_NO_PRIORITY);
	spec_tree_number_or(o, "queue_position", job->queue_position, 0);
	put_text(o, "submitter", job->submitter);
	spec_tree_number(o, "retries", job->retries);
	spec_tree_number(o, "max_retries", job->max_retries);
	spec_tree_number(o, "evictions", job->evictions);
	spec_tree_number_or(o, "time_limit", job->time_limit, 0);
	spec_yaml_add_time(o, "deadline", deadline);
	spec_yaml_add_time(o, "created", job->created);
	spec_yaml_add_time(o, "started", job->started);
	spec_yaml_add_time(o, "finished", job->finished);
	spec_yaml_add_time(o, "stale_since", job->stale_since);
	put_action(o, "pending_command", job->pending);
	put_action(o, "ignored_command", job->ignored);
	spec_tree_number(o, "logs_waiting", waiting);
	list = spec_tree_add(o, "transitions", spec_tree_list(job->transitions.n));
	for (size_t i = 0; i < job->transitions.n; i++) {
		const struct spec_transition *from = &job->transitions.v[i];
		struct json_object *one = spec_tree_append(list, spec_tree_map());

		spec_yaml_add_time(one, "time", from->time);
		spec_tree_text(one, "state", spec_state_name(from->state));
		put_text(one, "phase", from->phase);
	}
	list = spec_tree_add(o, "roles", spec_tree_list(job->n_roles));
	for (size_t i = 0; i < job->n_roles; i++)
		put_role(spec_tree_append(list, spec_tree_map()), job, &job->roles[i], brief);
	if (brief)
		drop_unfilled(o);
	return o;
}

void spec_status_yaml(const struct spec_job *job, char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *o = status_tree(job, is_local(job));

	spec_yaml_emit(o, STATUS_BLOCK_DEPTH, ret, ret_len);
}

static void print_json(const struct spec_job *job, int flags, char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *o = status_tree(job, false);

	spec_tree_add(o, "usage", spec_usage_tree(job, NULL));
	*ret = text_print("%s\n",
			  json_object_to_json_string_ext(o,
							 flags | JSON_C_TO_STRING_NOSLASHESCAPE));
	*ret_len = strlen(*ret);
}

void spec_status_json(const struct spec_job *job, char **ret, size_t *ret_len)
{
	print_json(job, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED, ret, ret_len);
}

void spec_status_json_line(const struct spec_job *job, char **ret, size_t *ret_len)
{
	print_json(job, JSON_C_TO_STRING_PLAIN, ret, ret_len);
}

void spec_status_replica(const struct spec_job *job, const struct spec_replica *r, char **ret,
			 size_t *ret_len)
{
	cleanup_json struct json_object *o = spec_tree_map();

	put_replica(o, r);
	spec_yaml_add_time(o, "started", r->started);
	spec_yaml_add_time(o, "finished", r->finished);
	spec_yaml_add_time(o, "deadline", r->deadline);
	spec_tree_add(o, "gap", spec_tree_uint(gaps_of(r)));
	spec_tree_number(o, "logs_waiting", waiting_of(r));
	if (is_local(job))
		drop_unfilled(o);
	spec_yaml_emit(o, 0, ret, ret_len);
}

void spec_status_replica_usage(const struct spec_job *job, const struct spec_replica *r, char **ret,
			       size_t *ret_len)
{
	cleanup_json struct json_object *o = spec_usage_tree(job, r);

	spec_yaml_emit(o, USAGE_BLOCK_DEPTH, ret, ret_len);
}

void spec_status_usage(const struct spec_job *job, char **ret, size_t *ret_len)
{
	spec_status_replica_usage(job, NULL, ret, ret_len);
}

void spec_status_ctl(const struct spec_job *job, unsigned allowed, char **ret, size_t *ret_len)
{
	char text[128], *to = text;

	for (int i = 0; i < SPEC_N_ACTIONS; i++) {
		const char *argument = spec_action_argument((enum spec_action)i);

		if (!(job->actions & allowed & 1u << i))
			continue;
		to = stpcpy(to, spec_action_name((enum spec_action)i));
		if (argument)
			to = stpcpy(stpcpy(to, " "), argument);
		*to++ = '\n';
	}
	*to = '\0';
	*ret_len = (size_t)(to - text);
	*ret = mem_copy(text, *ret_len);
}

char *spec_status_change(const struct spec_job *job, bool gone, int64_t time)
{
	bool cancelled = gone && !spec_state_is_final(job->state);
	const char *state = spec_state_name(cancelled ? SPEC_CANCELLED : job->state);
	const char *reason = gone || job->history ? "Removed" : job->reason;
	cleanup_free char *id = spec_utf8_field(job->id);
	cleanup_free char *why = spec_utf8_field(reason);
	char time_text[32];

	spec_time_text(time, time_text);
	return text_print("%s\t%s\t%s\t%s\n", time_text, id, state, why);
}
