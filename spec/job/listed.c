/* SPDX-License-Identifier: MIT */
/* Reads the members of a line, one after the other; a member that is missing or of another type counts as empty. */
#include "spec/job/listed.h"

#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/name.h"
#include "spec/base/read.h"
#include "spec/base/utf8.h"

#define UID_MAX	  64
#define ROLES_MAX 1000

static enum spec_state read_state(const struct spec_value *o)
{
	const char *word = spec_read_text(o, "state");

	for (int i = 0; i < SPEC_N_STATES; i++)
		if (streq(word, spec_state_words[i]))
			return (enum spec_state)i;
	return SPEC_UNKNOWN;
}

/* Read the roles of JOB, which has as many, with their replicas. */
static int read_roles(const struct spec_value *roles, struct spec_job *job)
{
	size_t at = 0;

	for (size_t i = 0; i < job->n_roles; i++) {
		const struct spec_value *o = spec_read_at(roles, i);
		const struct spec_value *replicas = spec_read_list(o, "replicas");
		struct spec_role_status *role = &job->roles[i];

		spec_read_copy_word(&role->name, o, "name");
		role->desired = (unsigned)spec_read_int(o, "desired", 0);
		role->minimum = (unsigned)spec_read_int(o, "minimum", 0);
		role->first = at;
		role->n = spec_read_count(replicas);
		for (size_t k = 0; k < role->n; k++, at++) {
			const struct spec_value *from = spec_read_at(replicas, k);
			struct spec_replica *r = &job->replicas[at];
			cleanup_free char *name = NULL;

			r->role = (unsigned)i;
			r->id = (unsigned)spec_read_int(from, "id", 0);
			r->state = read_state(from);
			r->attempt = (unsigned)spec_read_int(from, "attempt", 0);
			r->exit_code = spec_read_int(from, "exit_code", -1);
			r->signal = spec_read_int(from, "signal", 0);
			r->gap = (uint64_t)max_of(spec_read_int(from, "gap", 0), 0);
			spec_read_copy_word(&r->pod, from, "pod");
			spec_read_copy_word(&r->node, from, "node");
			spec_read_copy_word(&r->reason, from, "reason");
			spec_read_copy(&r->message, spec_read_text(from, "message"),
				       READ_MAX_MESSAGE);
			name = spec_name_replica_dir(role->name, r->id);
			if (!spec_name_is_file(name))
				return -EINVAL;
			spec_set(&r->name, name);
		}
	}
	return 0;
}

static void read_transitions(const struct spec_value *list, struct spec_transitions *t)
{
	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *o = spec_read_at(list, i);
		const char *phase = spec_read_text(o, "phase");

		if (strlen(phase) <= READ_MAX_WORD)
			spec_transitions_add(t, read_state(o), phase, spec_read_time(o, "time"));
	}
}

/* Read flavors, as spec_job.flavors has them. */
static void read_flavors(const struct spec_value *list, struct spec_job *job)
{
	cleanup_free char *all = text_copy("");

	for (size_t i = 0; i < min_of(spec_read_count(list), (size_t)SPEC_MAX_DEPTH); i++) {
		const struct spec_value *o = spec_read_at(list, i);

		text_set(&all, "%s%s%.*s=%.*s", all, *all ? "," : "", READ_MAX_WORD,
			 spec_read_text(o, "resource"), READ_MAX_WORD, spec_read_text(o, "flavor"));
	}
	spec_read_copy(&job->flavors, all, READ_MAX_MESSAGE);
}

static void read_job(const struct spec_value *o, struct spec_job *job)
{
	static const struct {
		const char *key;
		size_t at, max;
	} texts[] = {
		{"id", offsetof(struct spec_job, id), READ_MAX_WORD},
		{"uid", offsetof(struct spec_job, uid), READ_MAX_WORD},
		{"app", offsetof(struct spec_job, app), READ_MAX_WORD},
		{"phase", offsetof(struct spec_job, phase), READ_MAX_WORD},
		{"reason", offsetof(struct spec_job, reason), READ_MAX_WORD},
		{"message", offsetof(struct spec_job, message), READ_MAX_MESSAGE},
		{"last_words", offsetof(struct spec_job, last_words), READ_MAX_MESSAGE},
		{"backend", offsetof(struct spec_job, backend), READ_MAX_WORD},
		{"owner", offsetof(struct spec_job, owner), READ_MAX_WORD},
		{"namespace", offsetof(struct spec_job, namespace), READ_MAX_WORD},
		{"queue", offsetof(struct spec_job, queue), READ_MAX_WORD},
		{"cluster_queue", offsetof(struct spec_job, cluster_queue), READ_MAX_WORD},
		{"priority_class", offsetof(struct spec_job, priority_class), READ_MAX_WORD},
		{"submitter", offsetof(struct spec_job, submitter), READ_MAX_WORD},
	};

	for (size_t i = 0; i < array_size(texts); i++)
		spec_read_copy((char **)(void *)((char *)job + texts[i].at),
			       spec_read_text(o, texts[i].key), texts[i].max);
	job->state = read_state(o);
	job->priority = spec_read_int(o, "priority", SPEC_NO_PRIORITY);
	job->retries = (unsigned)spec_read_int(o, "retries", 0);
	job->max_retries = (unsigned)spec_read_int(o, "max_retries", 0);
	job->evictions = (unsigned)spec_read_int(o, "evictions", 0);
	job->time_limit = spec_read_int(o, "time_limit", 0);
	job->created = spec_read_time(o, "created");
	job->started = spec_read_time(o, "started");
	job->finished = spec_read_time(o, "finished");
	read_flavors(spec_read_list(o, "flavors"), job);
	read_transitions(spec_read_list(o, "transitions"), &job->transitions);
	job->changed = max_of(job->created, job->finished);
	for (size_t i = 0; i < job->transitions.n; i++)
		job->changed = max_of(job->changed, job->transitions.v[i].time);
	job->history = job->archived = job->brief = true;
}

/*
 * If TEXT begins with the uid of JOB, and may be shown as it is, make it the job's line, without the uid. False: it may
 * not.
 */
static bool take_line(struct spec_job *job, const char *text, size_t len)
{
	cleanup_free char *head = text_print("{\"uid\":\"%s\",", job->uid);
	cleanup_free char *line = mem_copy(text, len);
	size_t n = strlen(head);
	struct spec_text *ret;

	if (len <= n || memcmp(text, head, n) != 0 || strlen(line) != len ||
	    !spec_utf8_is_clean(line, ""))
		return false;
	ret = spec_text_new(NULL, len - n + 2);
	ret->text[0] = '{';
	memcpy(ret->text + 1, text + n, len - n);
	ret->text[len - n + 1] = '\n';
	job->line = ret;
	return true;
}

int spec_listed_parse(const char *text, size_t len, struct spec_job **ret)
{
	cleanup_free struct spec_value *root = NULL;
	cleanup_job struct spec_job *job = NULL;
	const struct spec_value *roles;
	size_t n = 0;
	int err = spec_value_parse_map(text, len, &root);

	if (err < 0)
		return err;
	roles = spec_read_list(root, "roles");
	if (spec_read_count(roles) > ROLES_MAX)
		return -EINVAL;
	for (size_t i = 0; i < spec_read_count(roles); i++)
		n += spec_read_count(spec_read_list(spec_read_at(roles, i), "replicas"));
	if (n > SPEC_MAX_REPLICAS)
		return -EINVAL;
	job = spec_job_new(spec_read_count(roles), n);
	read_job(root, job);
	err = read_roles(roles, job);
	if (err < 0)
		return err;
	if (!spec_name_is_file(job->id) || !spec_name_is_file(job->uid) ||
	    strlen(job->uid) > UID_MAX)
		return -EINVAL;
	(void)take_line(job, text, len);
	*ret = spec_job_pack(take_ptr(job));
	return 0;
}
