/* SPDX-License-Identifier: MIT */
/*
 * Volcano's Job. Each replica is a task of its own, because macros make replicas differ.
 */
#include <ctype.h>

#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/pod.h"

#define RESERVED_MILLICPU 100
#define RESERVED_MEMORY	  1024 /* MB */

static const struct spec_option options[] = {
	{.name = "queue",
	 .type = SPEC_OPTION_NAME,
	 .required = true,
	 .help = "queue that jobs wait in"},
	{.name = "service_account",
	 .type = SPEC_OPTION_NAME,
	 .help = "service account of the pods"},
	{.name = "priority_class", .type = SPEC_OPTION_NAME, .help = "priority class of jobs"},
	{.name = "image_repo", .help = "repository of local images (sha256:...)"},
	{.name = "reserved_millicpu",
	 .type = SPEC_OPTION_INT,
	 .max = INT32_MAX,
	 .help = "CPU left to nodes, in thousandths (default 100)"},
	{.name = "reserved_memmb",
	 .type = SPEC_OPTION_INT,
	 .max = INT32_MAX,
	 .help = "memory left to nodes, in MB (default 1024)"},
	{.name = "efa_device_count",
	 .type = SPEC_OPTION_INT,
	 .max = INT32_MAX,
	 .help = "number of EFA devices, whatever the resource says"},
	SPEC_TIME_LIMIT_OPTION,
	SPEC_TTL_OPTION,
	{.name = "no_annotations",
	 .type = SPEC_OPTION_BOOL,
	 .help = "leave the annotations and the label kxfs/... out"},
	{.name = "quiet", .type = SPEC_OPTION_BOOL, .help = "without effect; TorchX has it"},
	{.name = "validate_spec",
	 .type = SPEC_OPTION_BOOL,
	 .help = "without effect; TorchX has it"},
	{0},
};

struct volcano {
	struct spec_build *build;
	struct spec_pods pods;
	struct json_object *tasks;
	char *rank0_env;
};

static void volcano_clear(struct volcano *v)
{
	spec_pods_clear(&v->pods);
	json_object_put(v->tasks);
	free(v->rank0_env);
}

/*
 * APP-SUFFIX-ROLE-K-0. Volcano's webhook computes the length with the index of the task in the job
 * in place of the 0, so names get longer from the 11th task on.
 */
static size_t pod_name_len(size_t app, size_t role, size_t k, size_t last)
{
	return app + 1 + (SPEC_SUFFIX_MAX - 1) + 1 + role + 1 + spec_pods_digits(k) + 1 +
	       spec_pods_digits(last);
}

static void start(struct volcano *v)
{
	struct spec_build *b = v->build;
	struct spec_pods *p = &v->pods;
	cleanup_free char *name = spec_name_norm(b->app->roles[0].name);

	/* Volcano's variable for the hosts of a task: its name in upper case, dashes as underscores. */
	v->rank0_env = text_print("VC_%s_0_HOSTS", name);
	for (char *at = v->rank0_env; *at; at++)
		*at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
	p->build = b;
	p->app_name = b->app->name;
	p->rank0_env = v->rank0_env;
	p->hosts_dir = "/etc/volcano";
	p->reserved_cpu = RESERVED_MILLICPU;
	p->reserved_memory = RESERVED_MEMORY;
	p->efa = -1;
	spec_options_int(b->options, "reserved_millicpu", &p->reserved_cpu);
	spec_options_int(b->options, "reserved_memmb", &p->reserved_memory);
	spec_options_int(b->options, "efa_device_count", &p->efa);
	v->tasks = spec_tree_list(16);
	spec_pods_init(p);
}

/* --- retries --- */

/* Return the action by which Volcano retries a failed replica of ROLE; NULL if it does not. */
static const char *retry_action(const struct spec_role *role)
{
	switch (role->retry_policy) {
	case SPEC_RETRY_APPLICATION:
		return "RestartJob";
	case SPEC_RETRY_REPLICA:
		return "RestartTask"; /* each replica is a task */
	default:
		return NULL;
	}
}

/* Return Volcano's number of attempts. Volcano treats 0 as "not set". */
static int64_t attempts(int64_t max_retries)
{
	return max_retries > 0 ? min_of(max_retries, INT64_C(INT32_MAX - 1)) + 1 : 0;
}

/* --- tasks --- */

/* Make a task. NORM is the normal form of the role's name, with which names of tasks begin. */
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

		spec_tree_number(task, "maxRetry", attempts(role->max_retries));
		spec_tree_add(task, "policies", spec_tree_parse(policies));
	}
	spec_tree_add(task, "template", pod);
	return task;
}

static int make_tasks(struct volcano *v, size_t index)
{
	struct spec_pod_role r cleanup(spec_pod_role_clear);
	int err = spec_pod_role_init(&r, &v->pods, index);
	cleanup_free char *norm = spec_name_norm(r.role->name);

	for (unsigned k = 0; !err && k < r.role->num_replicas; k++) {
		struct json_object *task = make_task(&r, norm, k);

		if (!task)
			return v->build->errors->err;
		spec_tree_append(v->tasks, task);
	}
	return err;
}

static struct json_object *make_object(struct volcano *v)
{
	struct spec_build *b = v->build;
	const char *priority = spec_options_text(b->options, "priority_class");
	struct json_object *ret = spec_tree_map(), *metadata = spec_tree_map(),
			   *spec = spec_tree_map();

	spec_tree_text(ret, "apiVersion", b->kind->api_version);
	spec_tree_text(ret, "kind", b->kind->kind);
	spec_tree_text(metadata, "name", b->id);
	spec_tree_add(ret, "metadata", metadata);
	spec_tree_text(spec, "schedulerName", "volcano");
	spec_tree_text(spec, "queue", spec_options_text(b->options, "queue"));
	spec_tree_number(spec, "maxRetry", attempts(spec_pods_least_retries(b->app)));
	if (priority)
		spec_tree_text(spec, "priorityClassName", priority);
	spec_build_ttl(b, spec);
	/* Replicas must find each other before they are ready. */
	spec_tree_add(spec, "plugins",
		      spec_tree_parse(
			      "{\"svc\": [\"--publish-not-ready-addresses\"], \"env\": []}"));
	spec_tree_add(spec, "tasks", json_object_get(v->tasks));
	spec_tree_add(ret, "spec", spec);
	return ret;
}

static int volcano_build(struct spec_build *b)
{
	struct volcano v cleanup(volcano_clear) = {.build = b};
	int ret = spec_build_name(b, "Volcano");

	start(&v);
	for (size_t i = 0; i < b->app->n_roles; i++) {
		int err = spec_build_retries(b, i, "Volcano");
		int err2 = make_tasks(&v, i);

		ret = ret ? ret : err ? err : err2;
	}
	if (ret)
		return ret;
	b->object = make_object(&v);
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
	.templates = (const struct spec_template[]){{"spec.tasks", "template", false}, {0}},
	.scheduling_api = "scheduling.volcano.sh/v1beta1",
	.options = options,
	.pod_name_len = pod_name_len,
	.build = volcano_build,
	.reader = &spec_volcano_reader,
	.control = &spec_volcano_control,
};
