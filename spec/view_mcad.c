/* SPDX-License-Identifier: MIT */
/*
 * MCAD's AppWrappers (v1beta1), as its controller writes them. Its counts of pods are not read, and that
 * a job has ended it tells late, or not at all. Conditions are a list to which each type and reason is
 * added once: the last one is what happened last for the first time, and of a job that waits it is what
 * it waits for.
 */
#include <errno.h>

#include "spec/view_impl.h"

static const struct spec_phase phases[] = {
	{.name = "Pending", .state = SPEC_PENDING},
	{.name = "Running", .state = SPEC_RUNNING},
	{.name = "RunningHoldCompletion", .state = SPEC_RUNNING},
	{.name = "Completed", .state = SPEC_SUCCEEDED, .ending = true},
	{.name = "Failed", .state = SPEC_FAILED, .ending = true},
	{.name = "Deleted", .state = SPEC_CANCELLED, .ending = true},
	{0},
};

/* What the types of conditions mean to who waits; a type that is not here means nothing more. */
static const struct {
	const char *type;
	const char *text; /* before MCAD's own message, if there is one */
} words[] = {
	{"Init", "MCAD has not put the job into its queue yet"},
	{"Queueing", "The job waits in MCAD's queue until those before it have been dispatched"},
	{"HeadOfLine", "The job is at the head of MCAD's queue"},
	{"Backoff", "MCAD can't dispatch the job yet, and tries again by itself"},
	{"PreemptCandidate", "MCAD has taken the job back into its queue"},
	{"Preempted", "MCAD has taken the job back into its queue"},
};

static struct json_object *wrapped(struct json_object *object, const char **ret_key)
{
	struct json_object *resources = spec_read_map(spec_read_map(object, "spec"), "resources");

	*ret_key = "generictemplate";
	return spec_read_list(resources, "GenericItems");
}

static int read_job(struct json_object *object, struct spec_job_view *v,
		    struct spec_task_source **tasks, size_t *n)
{
	struct json_object *spec = spec_read_map(object, "spec");
	struct json_object *scheduling = spec_read_map(spec, "schedulingSpec");
	struct json_object *requeuing = spec_read_map(scheduling, "requeuing");
	const char *key;
	struct json_object *items = wrapped(object, &key);

	v->minimum = (unsigned)spec_read_int(scheduling, "minAvailable", 0);
	v->max_retries = (unsigned)spec_read_int(requeuing, "maxNumRequeuings", 0);
	/* With fewer pods than these that run or have succeeded, it is dispatched anew. */
	v->restarts = v->minimum > 0;
	return spec_wrap_tasks(items, key, v, tasks, n);
}

/* What a condition of TYPE means for a job in STATE; NULL: nothing that would have to be said. */
static const char *text_of(const char *state, const char *type)
{
	/* Of a job that runs again the last condition is older than that. */
	if (strncmp(state, "Running", strlen("Running")) == 0 || streq(state, "Completed"))
		return NULL;
	if (streq(type, "Failed"))
		return "MCAD could not create what the job consists of";
	if (streq(state, "Failed") || streq(state, "Deleted"))
		return "MCAD has ended the job";
	for (size_t i = 0; i < array_size(words); i++)
		if (streq(words[i].type, type))
			return words[i].text;
	return NULL;
}

/* The reason is one word; MCAD ends some with a full stop. */
static int set_reason(struct spec_job_view *v, const char *reason)
{
	cleanup_free char *word = strndup(reason, strcspn(reason, "."));

	return word ? spec_read_copy(&v->reason, word, READ_MAX_WORD) : -ENOMEM;
}

/* What CONDITION says to who asks why the job does not run, or does no more. */
static int explain(struct json_object *condition, struct spec_job_view *v)
{
	const char *text = text_of(v->phase, spec_read_text(condition, "type"));
	const char *message = spec_read_text(condition, "message");
	char *whole cleanup_free = NULL;
	char again[64] = "";

	if (!text)
		return 0;
	if (v->retries > 0 && streq(v->phase, "Pending"))
		snprintf(again, sizeof(again), " (requeued %u time%s)", v->retries,
			 v->retries == 1 ? "" : "s");
	if (asprintf(&whole, "%s%s%s%s", text, again, *message ? ": " : "", message) < 0) {
		whole = NULL;
		return -ENOMEM;
	}
	if (spec_read_copy(&v->message, whole, READ_MAX_MESSAGE) < 0)
		return -ENOMEM;
	return set_reason(v, spec_read_text(condition, "reason"));
}

static int read_status(struct json_object *object, struct spec_job_view *v)
{
	struct json_object *status = spec_read_map(object, "status");
	struct json_object *list = spec_read_list(status, "conditions");
	size_t n = spec_read_count(list);
	struct json_object *last = n > 0 ? spec_read_at(list, n - 1) : NULL;

	v->retries = (unsigned)spec_read_int(status, "numberOfRequeueings", 0);
	v->changed = spec_read_time(last, "lastTransitionMicroTime");
	if (spec_read_copy(&v->phase, spec_read_text(status, "state"), READ_MAX_WORD) < 0)
		return -ENOMEM;
	return explain(last, v);
}

const struct spec_reader spec_mcad_reader = {
	.job = read_job,
	.status = read_status,
	.pod = spec_wrap_pod,
	.wrapped = wrapped,
	.phases = phases,
	.pods_decide = true,
};
