/* SPDX-License-Identifier: MIT */
/*
 * The texts of state, status, status.json, ctl, changes and of a replica's status. status and
 * status.json are one tree, written twice, so they can't say different things.
 */
#include "spec/status.h"

#include <errno.h>
#include <time.h>

#include "spec/line.h"
#include "spec/tree.h"
#include "spec/utf8.h"
#include "spec/yaml.h"

/* Levels of status in block style: the job, its list of roles, a role, its list of replicas. */
#define STATUS_BLOCK_DEPTH 4

const char *spec_status_state(enum spec_state state)
{
	static const char *const lines[SPEC_N_STATES] = {
		[SPEC_SUBMITTED] = "SUBMITTED\n", [SPEC_PENDING] = "PENDING\n",
		[SPEC_RUNNING] = "RUNNING\n",	  [SPEC_SUCCEEDED] = "SUCCEEDED\n",
		[SPEC_FAILED] = "FAILED\n",	  [SPEC_CANCELLED] = "CANCELLED\n",
		[SPEC_UNKNOWN] = "UNKNOWN\n",
	};

	return lines[state];
}

void spec_time_text(int64_t ns, char ret[32])
{
	time_t seconds = ns / 1000000000;
	struct tm tm;

	ret[0] = '\0';
	if (ns && gmtime_r(&seconds, &tm))
		strftime(ret, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
}

static void put_time(struct spec_tree *t, struct json_object *o, const char *key, int64_t ns)
{
	char text[32];

	spec_time_text(ns, text);
	if (*text)
		spec_tree_add(t, o, key, spec_yaml_new_time(text));
	else
		spec_tree_null(t, o, key);
}

/* NUMBER, or null when it is NONE. */
static void put_number(struct spec_tree *t, struct json_object *o, const char *key, int number,
		       int none)
{
	if (number == none)
		spec_tree_null(t, o, key);
	else
		spec_tree_number(t, o, key, number);
}

/* The action that the bit set SET holds, or null. */
static void put_action(struct spec_tree *t, struct json_object *o, const char *key, unsigned set)
{
	if (set)
		spec_tree_text(t, o, key, spec_action_name((enum spec_action)__builtin_ctz(set)));
	else
		spec_tree_null(t, o, key);
}

/*
 * Texts come from outside. Both formats have escapes for the control characters of ASCII; what else a
 * terminal may obey, and what is no UTF-8, JSON would pass on as it is.
 */
static void put_text(struct spec_tree *t, struct json_object *o, const char *key, const char *text)
{
	static const char escaped[] = "\x01\x02\x03\x04\x05\x06\x07\b\t\n\v\f\r\x0e\x0f\x10\x11"
				      "\x12\x13\x14\x15\x16\x17\x18\x19\x1a\x1b\x1c\x1d\x1e\x1f";
	cleanup_free char *clean = NULL;

	if (!spec_utf8_is_clean(text, escaped)) {
		clean = spec_utf8_clean_copy(text, escaped);
		t->failed |= !clean;
	}
	spec_tree_text(t, o, key, clean ? clean : text);
}

static uint64_t gaps_of(const struct spec_replica *r)
{
	uint64_t n = 0;

	for (size_t i = 0; i < r->n_logs; i++)
		n += r->logs[i].gap;
	return n;
}

static int waiting_of(const struct spec_replica *r)
{
	int n = 0;

	for (size_t i = 0; i < r->n_logs; i++)
		n += r->logs[i].waiting;
	return n;
}

static void put_replica(struct spec_tree *t, struct json_object *o, const struct spec_replica *r)
{
	spec_tree_number(t, o, "id", r->id);
	put_text(t, o, "state", spec_state_name(r->state));
	put_text(t, o, "pod", r->pod);
	put_text(t, o, "node", r->node);
	spec_tree_number(t, o, "attempt", r->attempt);
	put_number(t, o, "exit_code", r->exit_code, -1);
	put_number(t, o, "signal", r->signal, 0);
	put_text(t, o, "reason", r->reason);
	put_text(t, o, "message", r->message);
}

static void put_role(struct spec_tree *t, struct json_object *o, const struct spec_job *job,
		     const struct spec_role_status *role)
{
	struct json_object *list;
	int64_t running = 0;

	for (size_t i = 0; i < role->n; i++)
		running += job->replicas[role->first + i].state == SPEC_RUNNING;
	put_text(t, o, "name", role->name);
	spec_tree_number(t, o, "desired", role->desired);
	spec_tree_number(t, o, "minimum", role->minimum);
	spec_tree_number(t, o, "running", running);
	list = spec_tree_add(t, o, "replicas", json_object_new_array_ext((int)role->n + 1));
	for (size_t i = 0; i < role->n; i++)
		put_replica(t, spec_tree_append(t, list, json_object_new_object()),
			    &job->replicas[role->first + i]);
}

static void put_transitions(struct spec_tree *t, struct json_object *o,
			    const struct spec_transitions *from)
{
	struct json_object *list = spec_tree_add(t, o, "transitions", spec_tree_list(t, from->n));

	for (size_t i = 0; i < from->n; i++) {
		struct json_object *one = spec_tree_append(t, list, spec_tree_map(t));

		put_time(t, one, "time", from->v[i].time);
		spec_tree_text(t, one, "state", spec_state_name(from->v[i].state));
		put_text(t, one, "phase", from->v[i].phase);
	}
}

/* NULL: no memory. */
static struct json_object *status_tree(const struct spec_job *job)
{
	cleanup_json struct json_object *o = json_object_new_object();
	struct spec_tree t = {0};
	struct json_object *roles;
	int64_t waiting = 0;

	for (size_t i = 0; i < job->n_replicas; i++)
		waiting += waiting_of(&job->replicas[i]);
	put_text(&t, o, "id", job->id);
	put_text(&t, o, "app", job->app);
	put_text(&t, o, "state", spec_state_name(job->state));
	put_text(&t, o, "phase", job->phase);
	put_text(&t, o, "reason", *job->cause ? job->cause : job->reason);
	put_text(&t, o, "message", *job->cause ? job->cause_text : job->message);
	put_text(&t, o, "backend", job->backend);
	put_text(&t, o, "namespace", job->namespace);
	put_text(&t, o, "queue", job->queue);
	put_text(&t, o, "submitter", job->submitter);
	spec_tree_number(&t, o, "retries", job->retries);
	spec_tree_number(&t, o, "max_retries", job->max_retries);
	put_time(&t, o, "created", job->created);
	put_time(&t, o, "started", job->started);
	put_time(&t, o, "finished", job->finished);
	put_time(&t, o, "stale_since", job->stale_since);
	put_action(&t, o, "pending_command", job->pending);
	put_action(&t, o, "ignored_command", job->ignored);
	spec_tree_number(&t, o, "logs_waiting", waiting);
	put_transitions(&t, o, &job->transitions);
	roles = spec_tree_add(&t, o, "roles", json_object_new_array_ext((int)job->n_roles + 1));
	for (size_t i = 0; i < job->n_roles; i++)
		put_role(&t, spec_tree_append(&t, roles, json_object_new_object()), job,
			 &job->roles[i]);
	return t.failed ? NULL : take_ptr(o);
}

int spec_status_yaml(const struct spec_job *job, char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *o = status_tree(job);

	return o ? spec_yaml_emit(o, STATUS_BLOCK_DEPTH, ret, ret_len) : -ENOMEM;
}

int spec_status_json(const struct spec_job *job, char **ret, size_t *ret_len)
{
	cleanup_json struct json_object *o = status_tree(job);
	const char *text;
	int n;

	if (!o)
		return -ENOMEM;
	text = json_object_to_json_string_ext(o, JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED |
							 JSON_C_TO_STRING_NOSLASHESCAPE);
	n = text ? asprintf(ret, "%s\n", text) : -1;
	if (n < 0)
		return -ENOMEM;
	*ret_len = (size_t)n;
	return 0;
}

int spec_status_replica(const struct spec_job *job, const struct spec_replica *r, char **ret,
			size_t *ret_len)
{
	cleanup_json struct json_object *o = json_object_new_object();
	struct spec_tree t = {0};

	(void)job;
	put_replica(&t, o, r);
	put_time(&t, o, "started", r->started);
	put_time(&t, o, "finished", r->finished);
	spec_tree_add(&t, o, "gap", json_object_new_uint64(gaps_of(r)));
	spec_tree_number(&t, o, "logs_waiting", waiting_of(r));
	return t.failed ? -ENOMEM : spec_yaml_emit(o, 0, ret, ret_len);
}

int spec_status_ctl(const struct spec_job *job, char **ret, size_t *ret_len)
{
	char text[64], *to = text;

	for (int i = 0; i < SPEC_N_ACTIONS; i++) {
		if (!(job->actions & 1u << i))
			continue;
		to = stpcpy(to, spec_action_name((enum spec_action)i));
		*to++ = '\n';
	}
	*to = '\0';
	*ret = strdup(text);
	*ret_len = (size_t)(to - text);
	return *ret ? 0 : -ENOMEM;
}

char *spec_status_change(const struct spec_job *job, int64_t time)
{
	const char *state = spec_state_name(job->state);
	const char *reason = job->history ? "Removed" : job->reason;
	cleanup_free char *id = spec_line_field(job->id);
	cleanup_free char *why = spec_line_field(reason);
	char time_text[32];
	char *ret;

	if (!id || !why)
		return NULL;
	spec_time_text(time, time_text);
	if (asprintf(&ret, "%s\t%s\t%s\t%s\n", time_text, id, state, why) < 0)
		return NULL;
	return ret;
}
