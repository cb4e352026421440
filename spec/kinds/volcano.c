/* SPDX-License-Identifier: MIT */
/*
 * The kind volcano: Volcano's Job.
 *
 * Reading: Volcano removes its counts of pods when a job has finished, so kxfs uses the pods
 * themselves.
 *
 * ctl: kxfs creates Commands. Volcano accepts any Command, ignores the uid of its target, and
 * deletes even a Command that it does not obey. So kxfs only creates Commands that Volcano obeys in
 * the job's current phase.
 *
 * Making: each replica is a task of its own, because macros make replicas differ.
 */
#include <ctype.h>
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/tree.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/pod.h"
#include "spec/view/control.h"
#include "spec/view/reader.h"
#include "spec/view/view.h"

/* --- reading --- */

/* Volcano's webhook replaces a maxRetry of 0 by this. */
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

/* True if a policy for EVENT applies when a task has succeeded. */
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

/* Return the action of the first of POLICIES for a task that has succeeded, or "". */
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

/*
 * True if Volcano does something other than complete the job when TASK has succeeded. The policies
 * of TASK take precedence over POLICIES, those of the job.
 */
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
	/* There is one condition for each phase that the job has had. The oldest is first. */
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
	 * DEFAULT_ATTEMPTS is probably from Volcano's webhook, not from the user. It matters only
	 * if a policy restarts the job.
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

static void read_pod(const struct spec_reader *reader, const struct spec_value *object,
		     struct spec_pod_view *v)
{
	const struct spec_value *notes =
		spec_read_map(spec_read_map(object, "metadata"), "annotations");
	int index = spec_read_digits(spec_read_text(notes, "volcano.sh/task-index"));
	int retry = spec_read_digits(spec_read_text(notes, "volcano.sh/job-retry-count"));
	const char *dash = strrchr(v->meta.name, '-');

	/*
	 * Volcano 1.8 does not set the annotation task-index. Use the pod's name, JOB-TASK-INDEX.
	 */
	if (index < 0 && dash)
		index = spec_read_digits(dash + 1);
	v->index = index < 0 ? SPEC_INDEX_NONE : (unsigned)index;
	v->retry = retry < 0 ? 0 : (unsigned)retry;
	spec_read_copy_word(&v->task, notes, "volcano.sh/task-spec");
	spec_read_copy(&v->main, spec_pod_choose_main(object, v->task), READ_MAX_WORD);
}

const struct spec_reader spec_volcano_reader = {
	.job = read_job,
	.status = read_status,
	.of_group = "batch.volcano.sh/",
	.of_kind = "Job",
	.pod = read_pod,
	.phases = phases,
	/* See Volcano's pkg/controllers/job/state/running.go. */
	.no_more = "Volcano does not retry a job if all its pods end before Volcano handles the "
		   "failed pod.",
};

/* --- ctl --- */

#define BIT(action) (1u << (action))

static const char *const commands[SPEC_N_ACTIONS] = {
	[SPEC_SUSPEND] = "AbortJob",
	[SPEC_RESUME] = "ResumeJob",
	[SPEC_RESTART] = "RestartJob",
	[SPEC_TERMINATE] = "TerminateJob",
};

/* The actions that Volcano obeys in a phase. In a phase without a row, it obeys none. */
static const struct {
	const char *phase;
	unsigned actions;
} obeyed[] = {
	{"Pending", BIT(SPEC_SUSPEND) | BIT(SPEC_RESTART) | BIT(SPEC_TERMINATE)},
	{"Running", BIT(SPEC_SUSPEND) | BIT(SPEC_RESTART) | BIT(SPEC_TERMINATE)},
	{"Aborting", BIT(SPEC_RESUME)},
	{"Aborted", BIT(SPEC_RESUME)},
};

static unsigned in_phase(const char *phase)
{
	for (size_t i = 0; i < array_size(obeyed); i++)
		if (streq(obeyed[i].phase, phase))
			return obeyed[i].actions;
	return 0;
}

/*
 * If JOB has no attempt left, return the actions that would need another one. Instead of obeying
 * these actions, Volcano would end the job as Failed.
 */
static unsigned in_vain(const struct spec_job_view *job)
{
	bool last = job->retry_limit && job->retries + 1 >= job->retry_limit;

	return last ? BIT(SPEC_RESUME) | BIT(SPEC_RESTART) : 0;
}

static int check(const struct spec_control_job *job, enum spec_action action, const char **ret_why)
{
	const struct spec_job_view *view = job->view;
	unsigned obeys = in_phase(view->phase) & BIT(action);

	*ret_why = NULL;
	if (view->meta.deleted)
		*ret_why = "the job is being deleted";
	else if (obeys & in_vain(view))
		*ret_why = "the action uses a retry, and the job has none left: Volcano would "
			   "end the job as Failed";
	else if (obeys)
		return 0;
	return -EINVAL;
}

static struct json_object *reference(const struct spec_job_view *job)
{
	struct json_object *o = spec_tree_map();

	spec_tree_text(o, "apiVersion", "batch.volcano.sh/v1alpha1");
	spec_tree_text(o, "kind", "Job");
	spec_tree_text(o, "name", job->meta.name);
	spec_tree_text(o, "uid", job->meta.uid);
	return o;
}

/*
 * Make a Command. The job owns it, so it is removed if the job is deleted before Volcano sees it.
 * The owner reference lacks controller and blockOwnerDeletion, which would require another right.
 */
static void request(const struct spec_control_asked *asked, struct spec_control_request *ret)
{
	struct json_object *o cleanup_json = spec_tree_map();
	struct json_object *meta = spec_tree_add(o, "metadata", spec_tree_map());
	struct json_object *owners;

	*ret = (struct spec_control_request){.resource = text_copy("commands.bus.volcano.sh")};
	spec_tree_text(o, "apiVersion", "bus.volcano.sh/v1alpha1");
	spec_tree_text(o, "kind", "Command");
	spec_tree_text(meta, "name", asked->name);
	spec_tree_text(meta, "namespace", asked->namespace);
	owners = spec_tree_add(meta, "ownerReferences", spec_tree_list(1));
	spec_tree_append(owners, reference(asked->job->view));
	spec_tree_text(o, "action", commands[asked->action]);
	spec_tree_add(o, "target", reference(asked->job->view));
	ret->body = spec_tree_print(o);
	ret->path =
		text_print("/apis/bus.volcano.sh/v1alpha1/namespaces/%s/commands?fieldManager=kxfs",
			   asked->namespace);
}

static bool is_one_of(const char *phase, const char *a, const char *b)
{
	return streq(phase, a) || streq(phase, b);
}

/* Compare the counts of retries, too, because the watch may miss a short phase. */
static enum spec_control_outcome outcome(enum spec_action action,
					 const struct spec_control_mark *before,
					 const struct spec_control_job *job)
{
	const struct spec_job_view *now = job->view;
	bool again = now->retries > before->retries;
	bool there;

	switch (action) {
	case SPEC_SUSPEND:
		there = is_one_of(now->phase, "Aborting", "Aborted");
		break;
	case SPEC_TERMINATE:
		there = is_one_of(now->phase, "Terminating", "Terminated");
		break;
	default:
		there = again || streq(now->phase, "Restarting");
	}
	if (there)
		return SPEC_CONTROL_OBEYED;
	/* Volcano may still act if the phase is the old one, is Restarting, or allows ACTION. */
	if (is_one_of(now->phase, before->phase, "Restarting") ||
	    in_phase(now->phase) & BIT(action))
		return SPEC_CONTROL_OPEN;
	return SPEC_CONTROL_LATE;
}

const struct spec_control spec_volcano_control = {
	.known = BIT(SPEC_SUSPEND) | BIT(SPEC_RESUME) | BIT(SPEC_RESTART) | BIT(SPEC_TERMINATE),
	/*
	 * Volcano deletes a Command before it acts. If kxfs created the Command again after that,
	 * Volcano would restart the job twice.
	 */
	.once = BIT(SPEC_RESTART),
	.check = check,
	.request = request,
	.outcome = outcome,
};

/* --- making --- */

static const struct spec_option options[] = {
	{.name = "queue", .type = SPEC_OPTION_NAME, .required = true, .help = "queue for the jobs"},
	{.name = "service_account",
	 .type = SPEC_OPTION_NAME,
	 .help = "service account of the pods"},
	{.name = "priority_class", .type = SPEC_OPTION_NAME, .help = "priority class of jobs"},
	{.name = "image_repo", .help = "repository to which local images (sha256:...) are pushed"},
	{.name = "reserved_millicpu",
	 .type = SPEC_OPTION_INT,
	 .max = INT32_MAX,
	 .help = "millicores of CPU to reserve on each node (default 100)"},
	{.name = "reserved_memmb",
	 .type = SPEC_OPTION_INT,
	 .max = INT32_MAX,
	 .help = "MB of memory to reserve on each node (default 1024)"},
	{.name = "efa_device_count",
	 .type = SPEC_OPTION_INT,
	 .max = INT32_MAX,
	 .help = "number of EFA devices; overrides the role's resource"},
	SPEC_TIME_LIMIT_OPTION,
	SPEC_TTL_OPTION,
	POD_NO_ANNOTATIONS_OPTION,
	{.name = "quiet",
	 .type = SPEC_OPTION_BOOL,
	 .help = "no effect; accepted because TorchX has "
		 "it"},
	{.name = "validate_spec",
	 .type = SPEC_OPTION_BOOL,
	 .help = "no effect; accepted because TorchX has it"},
	{0},
};

/*
 * Pods are named APP-SUFFIX-ROLE-K-0. When Volcano's webhook computes the length, it uses the
 * task's index instead of 0.
 */
static size_t pod_name_len(size_t app, size_t role, size_t k, size_t last)
{
	return app + 1 + (SPEC_SUFFIX_MAX - 1) + 1 + role + 1 + spec_pods_digits(k) + 1 +
	       spec_pods_digits(last);
}

static void start(struct spec_pods *p)
{
	const struct spec_build *b = p->build;
	cleanup_free char *name = spec_name_norm(b->app->roles[0].name);

	/*
	 * The name of the variable in which Volcano lists the hosts of a task. It contains the name
	 * of the task in upper case, with "_" for dashes.
	 */
	p->rank0_env = text_print("VC_%s_0_HOSTS", name);
	for (char *at = p->rank0_env; *at; at++)
		*at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
	p->hosts_dir = "/etc/volcano";
	spec_pods_init(p);
	spec_options_int(b->options, "reserved_millicpu", &p->reserved_cpu);
	spec_options_int(b->options, "reserved_memmb", &p->reserved_memory);
	spec_options_int(b->options, "efa_device_count", &p->efa);
}

/* --- retries --- */

/* Return the action by which Volcano retries replicas of ROLE, or NULL. */
static const char *retry_action(const struct spec_role *role)
{
	switch (role->retry_policy) {
	case SPEC_RETRY_APPLICATION:
		return "RestartJob";
	case SPEC_RETRY_REPLICA:
		return "RestartTask"; /* a task is one replica */
	default:
		return NULL;
	}
}

/* Return maxRetry, a number of attempts; 0 is "not set". */
static int64_t max_retry(int64_t max_retries)
{
	return max_retries > 0 ? min_of(max_retries, INT64_C(INT32_MAX - 1)) + 1 : 0;
}

/* --- tasks --- */

/* Make the task of replica K. NORM is the role's name in its normal form. */
static struct json_object *make_task(struct spec_pod_role *r, const char *norm, unsigned k)
{
	const struct spec_role *role = r->role;
	const char *action = retry_action(role);
	struct json_object *name cleanup_json = spec_tree_format("%s-%u", norm, k);
	struct json_object *pod = spec_pod_make(r, k, json_object_get_string(name));
	struct json_object *task;

	if (!pod)
		return NULL;
	task = spec_tree_map();
	spec_tree_add(task, "name", json_object_get(name));
	spec_tree_number(task, "replicas", 1);
	if (role->min_replicas >= 0)
		spec_tree_number(task, "minAvailable", k < role->min_replicas);
	if (role->max_retries > 0 && action) {
		cleanup_free char *policies =
			text_print("[{\"event\": \"PodEvicted\", \"action\": \"%s\"},"
				   " {\"event\": \"PodFailed\", \"action\": \"%s\"}]",
				   action, action);

		spec_tree_number(task, "maxRetry", max_retry(role->max_retries));
		spec_tree_add(task, "policies", spec_tree_parse(policies));
	}
	spec_tree_add(task, "template", pod);
	return task;
}

static int make_tasks(struct spec_pods *p, size_t index)
{
	struct spec_pod_role r cleanup(spec_pod_role_clear);
	int err = spec_pod_role_init(&r, p, index);
	cleanup_free char *norm = spec_name_norm(r.role->name);

	for (unsigned k = 0; !err && k < r.role->num_replicas; k++) {
		struct json_object *task = make_task(&r, norm, k);

		if (!task)
			return p->build->errors->err;
		spec_tree_append(p->parts, task);
	}
	return err;
}

static struct json_object *make_object(struct spec_pods *p)
{
	const struct spec_build *b = p->build;
	const char *priority = spec_options_text(b->options, "priority_class");
	struct json_object *ret = spec_tree_map(), *metadata = spec_tree_map(),
			   *spec = spec_tree_map();

	spec_tree_text(ret, "apiVersion", b->kind->api_version);
	spec_tree_text(ret, "kind", b->kind->kind);
	spec_tree_text(metadata, "name", b->id);
	spec_tree_add(ret, "metadata", metadata);
	spec_tree_text(spec, "schedulerName", "volcano");
	spec_tree_text(spec, "queue", spec_options_text(b->options, "queue"));
	spec_tree_number(spec, "maxRetry", max_retry(spec_pods_least_retries(b->app)));
	if (priority)
		spec_tree_text(spec, "priorityClassName", priority);
	spec_build_ttl(b, spec);
	/* Host names must work before the replicas are ready. */
	spec_tree_add(spec, "plugins",
		      spec_tree_parse(
			      "{\"svc\": [\"--publish-not-ready-addresses\"], \"env\": []}"));
	spec_tree_add(spec, "tasks", json_object_get(p->parts));
	spec_tree_add(ret, "spec", spec);
	return ret;
}

static int volcano_build(struct spec_build *b)
{
	struct spec_pods pods cleanup(spec_pods_clear) = {.build = b};
	int ret = spec_build_begin(b, "Volcano");

	start(&pods);
	for (size_t i = 0; i < b->app->n_roles; i++) {
		int err = make_tasks(&pods, i);

		ret = ret ? ret : err;
	}
	if (ret)
		return ret;
	b->object = make_object(&pods);
	return 0;
}

const struct spec_kind spec_volcano = {
	.name = "volcano",
	.jobs = "Volcano jobs",
	.scheduler = "kubernetes",
	.api_version = "batch.volcano.sh/v1alpha1",
	.kind = "Job",
	.plural = "jobs",
	.pod_selector = "volcano.sh/job-name",
	.templates = (const struct spec_template[]){{"spec.tasks", "template"}, {0}},
	.scheduling_api = "scheduling.volcano.sh/v1beta1",
	.options = options,
	.pod_name_len = pod_name_len,
	.build = volcano_build,
	.reader = &spec_volcano_reader,
	.control = &spec_volcano_control,
};
