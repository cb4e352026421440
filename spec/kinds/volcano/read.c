/* SPDX-License-Identifier: MIT */
/*
 * Volcano's Jobs and their pods, as Volcano's controller writes them. Its counts of pods are not read, since it removes
 * them when a job has finished, and the pods have more information.
 */
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "spec/view/reader.h"

/* The value by which Volcano's webhook replaces a maxRetry of 0. */
#define DEFAULT_ATTEMPTS 3

static const struct spec_phase phases[] = {
	{.name = "Pending", .state = SPEC_PENDING},
	{.name = "Running", .state = SPEC_RUNNING},
	{.name = "Restarting", .state = SPEC_RUNNING, .between = true},
	{.name = "Completing", .state = SPEC_RUNNING, .ending = true},
	{.name = "Terminating", .state = SPEC_RUNNING, .ending = true},
	{.name = "Aborting", .state = SPEC_RUNNING, .ending = true},
	{.name = "Aborted", .state = SPEC_CANCELLED, .ending = true, .suspended = true},
	{.name = "Completed", .state = SPEC_SUCCEEDED, .ending = true},
	{.name = "Terminated", .state = SPEC_FAILED, .ending = true, .gives_up = true},
	{.name = "Failed", .state = SPEC_FAILED, .ending = true},
	{0},
};

/* --- jobs --- */

/* True if a policy for EVENT applies when all pods of a task have succeeded. */
static bool is_success(const char *event)
{
	return streq(event, "TaskCompleted") || streq(event, "*");
}

static bool any_restarts(const struct spec_value *policies)
{
	for (size_t i = 0; i < spec_read_count(policies); i++)
		if (strncmp(spec_read_text(spec_read_at(policies, i), "action"), "Restart", 7) == 0)
			return true;
	return false;
}

/*
 * Return the action of the first of POLICIES that applies when all pods of a task have succeeded;
 * "" if none does.
 */
static const char *action_of_success(const struct spec_value *policies)
{
	for (size_t i = 0; i < spec_read_count(policies); i++) {
		const struct spec_value *one = spec_read_at(policies, i);
		const struct spec_value *events = spec_read_list(one, "events");
		bool fits = is_success(spec_read_text(one, "event"));

		for (size_t k = 0; k < spec_read_count(events); k++)
			fits |= is_success(spec_read_at(events, k)->text);
		if (fits)
			return spec_read_text(one, "action");
	}
	return "";
}

/* True if Volcano does not simply end the job when all pods of TASK have succeeded. */
static bool acts_on_success(const struct spec_value *task, const struct spec_value *policies)
{
	const char *action = action_of_success(spec_read_list(task, "policies"));

	if (!*action)
		action = action_of_success(policies);
	return *action && !streq(action, "CompleteJob");
}

static void read_task(const struct spec_value *task, struct spec_task_source *ret)
{
	const struct spec_value *pod = spec_read_map(task, "template");
	const struct spec_value *labels = spec_view_labels(pod);
	int id = spec_read_digits(spec_read_text(labels, "torchx.pytorch.org/replica-id"));

	ret->name = spec_read_text(task, "name");
	ret->replicas = (unsigned)spec_read_int(task, "replicas", 1);
	ret->minimum = (unsigned)spec_read_int(task, "minAvailable", (int)ret->replicas);
	ret->time_limit = spec_view_time_limit(pod);
	ret->role = id < 0 ? "" : spec_read_text(labels, "torchx.pytorch.org/role-name");
	ret->replica = id < 0 ? 0 : (unsigned)id;
}

static void read_status(const struct spec_reader *reader, const struct spec_value *object,
			struct spec_job_view *v)
{
	const struct spec_value *status = spec_read_map(object, "status");
	const struct spec_value *state = spec_read_map(status, "state");
	const struct spec_value *conditions = spec_read_list(status, "conditions");

	v->retries = (unsigned)spec_read_int(status, "retryCount", 0);
	v->changed = spec_read_time(state, "lastTransitionTime");
	spec_read_copy_word(&v->phase, state, "phase");
	spec_read_copy_word(&v->reason, state, "reason");
	spec_read_copy_message(&v->message, state);
	/* There is one condition for each phase, the newest last. */
	for (size_t i = 0; i < spec_read_count(conditions); i++) {
		const struct spec_value *one = spec_read_at(conditions, i);
		char *phase = NULL;

		spec_read_copy_word(&phase, one, "status");
		spec_transitions_add(&v->conditions, SPEC_UNKNOWN, phase,
				     spec_read_time(one, "lastTransitionTime"));
		spec_unset(&phase);
	}
}

static size_t read_job(const struct spec_reader *reader, const struct spec_value *object,
		       struct spec_job_view *v, struct spec_task_source **ret_tasks)
{
	const struct spec_value *spec = spec_read_map(object, "spec");
	const struct spec_value *list = spec_read_list(spec, "tasks");
	const struct spec_value *policies = spec_read_list(spec, "policies");
	const struct spec_value *labels =
		spec_view_labels(spec_read_map(spec_read_at(list, 0), "template"));
	int attempts = spec_read_int(spec, "maxRetry", 0);
	size_t n = spec_read_count(list);

	*ret_tasks = new0_n(struct spec_task_source, n);
	v->restarts = any_restarts(policies);
	for (size_t i = 0; i < n; i++) {
		const struct spec_value *task = spec_read_at(list, i);

		v->restarts |= any_restarts(spec_read_list(task, "policies"));
		v->acts_on_success |= acts_on_success(task, policies);
		read_task(task, &(*ret_tasks)[i]);
	}
	/*
	 * A webhook sets this default, so in a job that no policy restarts, the user did not choose
	 * it.
	 */
	if (attempts > 0 && (v->restarts || attempts != DEFAULT_ATTEMPTS))
		v->max_retries = (unsigned)attempts - 1;
	v->retry_limit = (unsigned)max_of(attempts, 0);
	v->minimum = (unsigned)spec_read_int(spec, "minAvailable", 0);
	spec_read_copy_word(&v->queue, spec, "queue");
	spec_read_copy_word(&v->app, labels, "torchx.pytorch.org/app-name");
	return n;
}

/* --- pods --- */

/* Volcano writes its data about a pod into annotations, and much of it into labels too. */
static const char *note_of(const struct spec_value *object, const char *key)
{
	const struct spec_value *metadata = spec_read_map(object, "metadata");
	const char *text = spec_read_text(spec_read_map(metadata, "annotations"), key);

	return *text ? text : spec_read_text(spec_view_labels(object), key);
}

static void read_pod(const struct spec_reader *reader, const struct spec_value *object,
		     struct spec_pod_view *v)
{
	int index = spec_read_digits(note_of(object, "volcano.sh/task-index"));
	int retry = spec_read_digits(note_of(object, "volcano.sh/job-retry-count"));
	const char *dash = strrchr(v->meta.name, '-');

	/* Its name is JOB-TASK-INDEX. */
	if (index < 0 && dash)
		index = spec_read_digits(dash + 1);
	v->index = index < 0 ? SPEC_INDEX_NONE : (unsigned)index;
	v->retry = retry < 0 ? 0 : (unsigned)retry;
	spec_read_copy(&v->task, note_of(object, "volcano.sh/task-spec"), READ_MAX_WORD);
	spec_read_copy(&v->main, spec_pod_choose_main(object, v->task), READ_MAX_WORD);
}

const struct spec_reader spec_volcano_reader = {
	.job = read_job,
	.status = read_status,
	.of_group = "batch.volcano.sh/",
	.of_kind = "Job",
	.pod = read_pod,
	.phases = phases,
	/* pkg/controllers/job/state/running.go */
	.no_more =
		"Volcano does not retry if all pods of the job have ended before it handles the failed one.",
};
