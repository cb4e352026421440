/* SPDX-License-Identifier: MIT */
/*
 * JobSets, whoever made them, and the pods of their Jobs. A JobSet has no phase of its own but conditions, of which a
 * phase is made here. Each of its Jobs is a task; a replicated job that has one Job gives it its name, one that has
 * several NAME.INDEX. A pod's controller is its Job, so the JobSet that it belongs to is read from its labels.
 */
#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/kinds/jobset/names.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/indexed.h"

static const struct spec_phase phases[] = {
	{.name = "Suspended",
	 .state = SPEC_CANCELLED,
	 .ending = true,
	 .suspended = true,
	 .asked = true},
	{.name = "Suspended", .state = SPEC_PENDING},
	{.name = "Running", .state = SPEC_RUNNING, .by_pods = true},
	{.name = "Completed", .state = SPEC_SUCCEEDED, .ending = true},
	{.name = "Failed", .state = SPEC_FAILED, .ending = true},
	{0},
};

/* --- what follows from the spec --- */

/* The name of Job INDEX of the COUNT of the replicated job NAME. */
static void name_task(const char *name, int index, int count, char *ret, size_t size)
{
	if (count == 1)
		snprintf(ret, size, "%s", name);
	else
		snprintf(ret, size, "%s.%d", name, index);
}

static const struct spec_value *job_spec(const struct spec_value *replicated)
{
	return spec_read_map(spec_read_map(replicated, "template"), "spec");
}

/* The tasks of a replicated job, appended to the N of TASKS, which has room for MAX. Returns how many there are now. */
static size_t read_tasks(const struct spec_value *replicated, struct spec_task_source *tasks,
			 size_t n, size_t max)
{
	const char *name = spec_read_text(replicated, "name");
	int count = spec_read_int(replicated, "replicas", 1);
	const struct spec_value *job = job_spec(replicated);
	int pods = spec_read_int(job, "completions", -1);

	if (pods < 0)
		pods = spec_read_int(job, "parallelism", 1);
	for (int i = 0; i < count && n < max; i++, n++) {
		name_task(name, i, count, tasks[n].key, sizeof(tasks[n].key));
		tasks[n].name = tasks[n].key;
		tasks[n].role = "";
		tasks[n].replicas = tasks[n].minimum = (unsigned)pods;
		tasks[n].time_limit = spec_view_time_limit(spec_read_map(job, "template"));
	}
	return n;
}

static bool retries_alone(const struct spec_value *list)
{
	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *job = job_spec(spec_read_at(list, i));

		if (spec_read_int(job, "backoffLimitPerIndex", 0) > 0 ||
		    spec_read_int(job, "backoffLimit", 6) > 0)
			return true;
	}
	return false;
}

static size_t read_job(const struct spec_value *object, struct spec_job_view *v,
		       struct spec_task_source **ret_tasks)
{
	const struct spec_value *spec = spec_read_map(object, "spec");
	const struct spec_value *list = spec_read_list(spec, "replicatedJobs");
	const struct spec_value *first = job_spec(spec_read_at(list, 0));
	size_t all = 0, max, n = 0;
	/* How often all of it may be tried again; or, if never, the replica that may be most often. */
	int retries = spec_read_int(spec_read_map(spec, "failurePolicy"), "maxRestarts", 0);
	int alone = 0;

	for (size_t i = 0; i < spec_read_count(list); i++)
		all += (size_t)spec_read_int(spec_read_at(list, i), "replicas", 1);
	for (size_t i = 0; i < spec_read_count(list); i++)
		alone = max_of(alone, spec_read_int(job_spec(spec_read_at(list, i)),
						    "backoffLimitPerIndex", 0));
	max = min_of(all, (size_t)SPEC_MAX_REPLICAS);
	*ret_tasks = new0_n(struct spec_task_source, max);
	for (size_t i = 0; i < spec_read_count(list); i++)
		n = read_tasks(spec_read_at(list, i), *ret_tasks, n, max);
	for (size_t i = 0; i < n; i++)
		v->minimum += (*ret_tasks)[i].minimum;
	v->hidden = all > max;
	v->alone = retries == 0 && alone > 0;
	v->max_retries = (unsigned)(v->alone ? alone : retries);
	v->restarts = v->max_retries > 0 || retries_alone(list);
	spec_read_copy_word(&v->app, spec_view_labels(spec_read_map(first, "template")),
			    "torchx.pytorch.org/app-name");
	return n;
}

/* --- what follows from the status --- */

static void read_status(const struct spec_value *object, struct spec_job_view *v)
{
	static const char *const types[] = {"Completed", "Failed", "Suspended", NULL};
	const struct spec_value *status = spec_read_map(object, "status");
	const struct spec_value *failed = indexed_condition(status, "Failed");

	v->retries = (unsigned)spec_read_int(status, "restarts", 0);
	indexed_status(v, object, indexed_phase(status, types));
	/* Its owner has ended too, and does not make it anew (Trainer's trainjob_controller.go). */
	if (streq(v->phase, "Completed") || streq(v->phase, "Failed"))
		v->owned = false;
	if (failed) {
		spec_read_copy_word(&v->reason, failed, "reason");
		spec_read_copy_message(&v->message, failed);
		v->vague = true;
	}
}

/* --- pods --- */

/* Is its controller called as the Job is that its labels tell of? Whoever copies a pod copies these too. */
static bool is_made(const struct spec_value *pod)
{
	const struct spec_value *labels = spec_view_labels(pod);
	cleanup_free char *job =
		text_print("%s-%s-%d", spec_read_text(labels, JOBSET_LABEL "jobset-name"),
			   spec_read_text(labels, JOBSET_LABEL "replicatedjob-name"),
			   indexed_number(labels, JOBSET_LABEL "job-index", 0));

	return streq(spec_read_text(spec_view_controller(pod), "name"), job);
}

static void read_pod(const struct spec_value *object, struct spec_pod_view *v)
{
	const struct spec_value *labels = spec_view_labels(object);
	const char *name = spec_read_text(labels, JOBSET_LABEL "replicatedjob-name");
	char task[READ_MAX_WORD + 1];

	name_task(name, indexed_number(labels, JOBSET_LABEL "job-index", 0),
		  indexed_number(labels, JOBSET_LABEL "replicatedjob-replicas", 1), task,
		  sizeof(task));
	indexed_pod(object, v);
	v->retry = (unsigned)indexed_number(labels, JOBSET_LABEL "restart-attempt", 0);
	if (is_made(object))
		spec_pod_view_owned(v, spec_read_text(labels, JOBSET_LABEL "jobset-uid"));
	spec_read_copy(&v->task, task, READ_MAX_WORD);
	spec_read_copy(&v->main, spec_pod_choose_main(object, name), READ_MAX_WORD);
}

const struct spec_reader spec_jobset_reader = {
	.job = read_job,
	.status = read_status,
	.of_group = "batch/",
	.of_kind = "Job",
	.has = is_made,
	.pod = read_pod,
	.phases = phases,
	.remade = true,
};
