/* SPDX-License-Identifier: MIT */
/*
 * The kind mcad: AppWrappers of v1beta1, which MCAD controls.
 *
 * Reading: MCAD reports the end of a job late or never, so pods decide. The list of conditions has
 * one entry for each type and reason, and an entry never moves. Its time shows when the condition
 * last occurred or, for some types, first occurred. The latest condition shows why a job waits.
 *
 * Making: each pod group, each pod and one headless service is a generic item.
 */
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/wrap.h"

/* --- reading --- */

static const struct spec_phase phases[] = {
	{.name = "Pending", .state = SPEC_PENDING},
	{.name = "Running", .state = SPEC_RUNNING, .by_pods = true},
	{.name = "RunningHoldCompletion", .state = SPEC_RUNNING, .by_pods = true},
	{.name = "Completed", .state = SPEC_SUCCEEDED, .ending = true},
	{.name = "Failed", .state = SPEC_FAILED, .ending = true},
	{.name = "Deleted", .state = SPEC_CANCELLED, .ending = true},
	{0},
};

/* The reason that MCAD reports if it can't create the pods. A full stop may follow. */
#define UNMADE "ItemCreationFailure"

/* What a condition means for a waiting job. */
static const struct {
	const char *type;
	const char *text; /* followed by MCAD's message, if there is one */
} words[] = {
	{"Init", "MCAD has not put the job into its queue yet"},
	{"Queueing",
	 "The job waits in MCAD's queue until the jobs ahead of it have been dispatched"},
	{"HeadOfLine", "The job is at the head of MCAD's queue"},
	{"Backoff", "MCAD can't dispatch the job yet, and retries automatically"},
	{"PreemptCandidate", "MCAD has requeued the job"},
	{"Preempted", "MCAD has requeued the job"},
};

static size_t read_job(const struct spec_reader *reader, const struct spec_value *object,
		       struct spec_job_view *v, struct spec_task_source **ret_tasks)
{
	const struct spec_value *spec = spec_read_map(object, "spec");
	const struct spec_value *scheduling = spec_read_map(spec, "schedulingSpec");
	const struct spec_value *requeuing = spec_read_map(scheduling, "requeuing");
	const struct spec_value *items =
		spec_read_list(spec_read_map(spec, "resources"), "GenericItems");

	v->minimum = (unsigned)spec_read_int(scheduling, "minAvailable", 0);
	v->max_retries = (unsigned)spec_read_int(requeuing, "maxNumRequeuings", 0);
	/* MCAD restarts the job if fewer than MINIMUM pods run or have succeeded. */
	v->restarts = v->minimum > 0;
	return wrap_tasks(items, "generictemplate", v, ret_tasks);
}

/* Return what a condition of TYPE means in STATE, the job's state; NULL to ignore it. */
static const char *text_of(const char *state, const char *type)
{
	/* MCAD adds no condition when a job runs again, so the last one is out of date. */
	if (strncmp(state, "Running", strlen("Running")) == 0 || streq(state, "Completed"))
		return NULL;
	if (streq(type, "Failed"))
		return "MCAD could not create the job's objects";
	if (streq(state, "Failed") || streq(state, "Deleted"))
		return "MCAD has ended the job";
	for (size_t i = 0; i < array_size(words); i++)
		if (streq(words[i].type, type))
			return words[i].text;
	return NULL;
}

/* If CONDITION explains why the job waits or has ended, set V's reason and message. */
static void explain(const struct spec_value *condition, struct spec_job_view *v)
{
	const char *text = text_of(v->phase, spec_read_text(condition, "type"));
	const char *message = spec_read_text(condition, "message");
	const char *reason = spec_read_text(condition, "reason");
	cleanup_free char *whole = NULL, *word cleanup_free = NULL;
	char again[64] = "";

	if (!text)
		return;
	if (v->retries > 0 && streq(v->phase, "Pending"))
		snprintf(again, sizeof(again), " (requeued %u time%s)", v->retries,
			 v->retries == 1 ? "" : "s");
	whole = text_print("%s%s%s%s", text, again, *message ? ": " : "", message);
	spec_read_copy(&v->message, whole, READ_MAX_MESSAGE);
	word = mem_copy(reason, strcspn(reason, "."));
	spec_read_copy(&v->reason, word, READ_MAX_WORD);
}

static bool is_unmade(const struct spec_value *condition)
{
	return streq(spec_read_text(condition, "type"), "Failed") &&
	       strncmp(spec_read_text(condition, "reason"), UNMADE, strlen(UNMADE)) == 0;
}

/*
 * Return the condition which reports that MCAD can't create the pods. Return NULL if there is none,
 * or if MCAD has dispatched the job since. As long as MCAD can't create the pods, the job waits,
 * and MCAD alternates between the states Failed and Pending every 2-3 s.
 */
static const struct spec_value *unmade(const struct spec_value *list)
{
	const struct spec_value *ret = NULL;
	int64_t made = 0;

	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *one = spec_read_at(list, i);

		if (streq(spec_read_text(one, "type"), "Dispatched")) {
			made = spec_read_time(one, "lastTransitionMicroTime");
			ret = NULL;
		} else if (is_unmade(one)) {
			ret = one;
		}
	}
	return ret && made > spec_read_time(ret, "lastTransitionMicroTime") ? NULL : ret;
}

/*
 * Return the time when MCAD last requeued the job, or 0. Older pods belong to an earlier attempt.
 * Round down to seconds, like the creation times of pods.
 */
static int64_t began(const struct spec_value *list)
{
	int64_t ret = 0;

	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *one = spec_read_at(list, i);

		if (streq(spec_read_text(one, "type"), "PreemptCandidate"))
			ret = max_of(ret, spec_read_time(one, "lastTransitionMicroTime"));
	}
	return ret - ret % NS_PER_S;
}

static const struct spec_value *last_of(const struct spec_value *list)
{
	const struct spec_value *ret = NULL;

	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *one = spec_read_at(list, i);

		if (spec_read_time(one, "lastTransitionMicroTime") >=
		    spec_read_time(ret, "lastTransitionMicroTime"))
			ret = one;
	}
	return ret;
}

static void read_status(const struct spec_reader *reader, const struct spec_value *object,
			struct spec_job_view *v)
{
	const struct spec_value *status = spec_read_map(object, "status");
	const struct spec_value *list = spec_read_list(status, "conditions");
	const struct spec_value *last = last_of(list);
	const char *state = spec_read_text(status, "state");
	const struct spec_value *trouble = unmade(list);
	size_t n = spec_read_count(list);

	if (trouble && (streq(state, "Failed") || streq(state, "Pending"))) {
		state = "Pending";
		last = trouble;
	} else if (streq(state, "Failed") && n > 0 && is_unmade(spec_read_at(list, n - 1))) {
		/*
		 * If the last condition already reports that MCAD can't create the pods, MCAD does
		 * not append another one. So the time of this condition may be before the job was
		 * last dispatched. The job still waits.
		 */
		state = "Pending";
	}
	v->retries = (unsigned)spec_read_int(status, "numberOfRequeueings", 0);
	v->changed = spec_read_time(last, "lastTransitionMicroTime");
	v->began = began(list);
	spec_read_copy(&v->phase, state, READ_MAX_WORD);
	explain(last, v);
}

const struct spec_reader spec_mcad_reader = {
	.job = read_job,
	.status = read_status,
	.of_group = "workload.codeflare.dev/",
	.of_kind = "AppWrapper",
	.pod = wrap_pod,
	.phases = phases,
	.pods_decide = SPEC_PODS_DECIDE_END,
	.again = "MCAD restarts the whole job automatically after some minutes.",
};

/* --- making --- */

static const struct spec_option options[] = {
	WRAP_OPTIONS,
	{.name = "priority",
	 .type = SPEC_OPTION_INT,
	 .min = INT32_MIN,
	 .max = INT32_MAX,
	 .help = "priority of jobs in MCAD's queue"},
	POD_NO_ANNOTATIONS_OPTION,
	{0},
};

static struct json_object *make_item(struct json_object *object)
{
	struct json_object *item = spec_tree_map();

	spec_tree_number(item, "replicas", 1);
	spec_tree_add(item, "generictemplate", object);
	return item;
}

static void put_retries(const struct spec_app *app, struct json_object *spec)
{
	long long retries = spec_pods_least_retries(app), pods = 0;
	cleanup_free char *scheduling = NULL;

	for (size_t i = 0; i < app->n_roles; i++)
		pods += app->roles[i].num_replicas;
	if (retries == 0)
		return;
	scheduling = text_print("{\"minAvailable\": %lld, \"requeuing\": {\"timeInSeconds\": 300,"
				" \"maxTimeInSeconds\": 0, \"growthType\": \"exponential\","
				" \"maxNumRequeuings\": %lld}}",
				pods, retries);
	spec_tree_add(spec, "schedulingSpec", spec_tree_parse(scheduling));
}

static struct json_object *make_object(struct spec_pods *p)
{
	const struct spec_build *b = p->build;
	struct json_object *spec = spec_tree_map(), *resources = spec_tree_map(), *metadata;
	struct json_object *ret = spec_build_object(b, b->kind->api_version, b->kind->kind,
						    spec_tree_string(b->id), &metadata);
	int64_t priority;

	if (spec_options_int(b->options, "priority", &priority))
		spec_tree_number(spec, "priority", priority);
	put_retries(b->app, spec);
	spec_tree_add(resources, "GenericItems", json_object_get(p->parts));
	spec_tree_add(spec, "resources", resources);
	spec_tree_add(ret, "spec", spec);
	return ret;
}

static int mcad_build(struct spec_build *b)
{
	return wrap_build(b, make_item, make_object);
}

const struct spec_kind spec_mcad = {
	.name = "mcad",
	.jobs = "AppWrappers",
	.scheduler = "kubernetes_mcad",
	.api_version = "workload.codeflare.dev/v1beta1",
	.kind = "AppWrapper",
	.plural = "appwrappers",
	.pod_selector = "",
	.templates =
		(const struct spec_template[]){{"spec.resources.GenericItems", "generictemplate"},
					       {0}},
	.options = options,
	.build = mcad_build,
	.reader = &spec_mcad_reader,
};
