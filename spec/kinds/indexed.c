/* SPDX-License-Identifier: MIT */
/*
 * Makes batch Jobs and JobSets (v1alpha2); files in share/kinds/ describe how kxfs reads them. Each
 * role becomes an Indexed Job of Kubernetes, and each replica one of its completions. The replicas
 * of a role share one template, so the object does not grow with their number. They differ only in
 * their index, an environment variable that replaces the macro replica_id.
 */
#include <errno.h>

#include "spec/app/app.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/value.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/pod.h"
#include "spec/view/kueue.h"
#include "spec/view/reader.h"

#define INDEX "JOB_COMPLETION_INDEX"
#define NOTES "batch.kubernetes.io/"

/* A label that the Job controller sets in all pods. */
#define INDEXED_POD_SELECTOR "batch.kubernetes.io/job-name"

/* The run options of all kinds in this file. */
#define INDEXED_OPTIONS                                                                            \
	{.name = "queue", .type = SPEC_OPTION_NAME, .help = "Kueue queue for the jobs"},           \
		{.name = "priority_class",                                                         \
		 .type = SPEC_OPTION_NAME,                                                         \
		 .help = "Kueue priority class of the jobs"},                                      \
		POD_OPTIONS, SPEC_TIME_LIMIT_OPTION, SPEC_TTL_OPTION, POD_NO_ANNOTATIONS_OPTION

/*
 * Prepare P for the pods of its build, whose id must be set. RANK0_HOST is the host name of rank 0,
 * or NULL if pods have no host names. Take ownership of RANK0_HOST.
 */
static void indexed_init(struct spec_pods *p, char *rank0_host)
{
	p->rank0_env = text_copy("TORCHX_RANK0_HOST");
	p->rank0_host = rank0_host;
	p->replica_id = "$(" INDEX ")";
	/* The Job controller writes the pod's index into this annotation. */
	p->number = spec_tree_parse("{\"name\": \"" INDEX
				    "\", \"valueFrom\": {\"fieldRef\": {\"fieldPath\": "
				    "\"metadata.annotations['" NOTES "job-completion-index']\"}}}");
	spec_pods_init(p);
}

/*
 * Make the spec of the Job for role INDEX. RETRIES adds the fields that control retries. If there
 * is an error, add it to the build's errors and return NULL.
 */
static struct json_object *indexed_job(struct spec_pods *p, size_t index, int64_t parallelism,
				       void (*retries)(struct json_object *spec,
						       const struct spec_role *role))
{
	struct spec_pod_role r cleanup(spec_pod_role_clear);
	cleanup_free char *name = spec_name_norm(p->build->app->roles[index].name);
	struct json_object *pod, *ret;

	if (spec_pod_role_init(&r, p, index) < 0)
		return NULL;
	spec_pod_add_secret(&r);
	pod = spec_pod_make(&r, 0, name);
	if (!pod)
		return NULL;
	ret = spec_tree_map();
	spec_tree_text(ret, "completionMode", "Indexed");
	spec_tree_number(ret, "completions", r.role->num_replicas);
	spec_tree_number(ret, "parallelism", parallelism);
	retries(ret, r.role);
	spec_tree_add(ret, "template", pod);
	return ret;
}

/* Make the object of P's build, but not its spec. */
static struct json_object *indexed_object(struct spec_pods *p)
{
	const struct spec_build *b = p->build;
	struct json_object *labels = spec_pods_object_labels(p), *metadata;
	struct json_object *ret = spec_build_object(b, b->kind->api_version, b->kind->kind,
						    spec_tree_string(b->id), &metadata);
	const char *priority = spec_options_text(b->options, "priority_class");

	spec_build_queue(b, labels);
	if (priority && *priority)
		spec_tree_text(labels, SPEC_KUEUE_PRIORITY, priority);
	spec_tree_add(metadata, "labels", labels);
	return ret;
}

/* --- JobSet: a replicated job for each role --- */

/* Bytes of the suffix, like "-x7k2p", that the Job controller appends to pod names. */
#define POD_SUFFIX 6

static const struct spec_option jobset_options[] = {INDEXED_OPTIONS, {0}};

/* The pod's name is APP-SUFFIX-ROLE-0-K-xxxxx. JobSet's webhook requires that it fits a label. */
static size_t jobset_pod_name_len(size_t app, size_t role, size_t k, size_t last)
{
	return app + 1 + (SPEC_SUFFIX_MAX - 1) + 1 + role + strlen("-0-") + spec_pods_digits(k) +
	       POD_SUFFIX;
}

/* If a replica with no retries left fails, its Job fails. The JobSet then fails or restarts. */
static void jobset_retries(struct json_object *spec, const struct spec_role *role)
{
	if (role->retry_policy == SPEC_RETRY_REPLICA && role->max_retries > 0) {
		spec_tree_number(spec, "backoffLimitPerIndex", role->max_retries);
		spec_tree_number(spec, "maxFailedIndexes", 0);
	} else {
		spec_tree_number(spec, "backoffLimit", 0);
	}
}

static int add_job(struct spec_pods *p, size_t index)
{
	const struct spec_role *role = &p->build->app->roles[index];
	cleanup_free char *name = spec_name_norm(role->name);
	struct json_object *spec = indexed_job(p, index, role->num_replicas, jobset_retries);
	struct json_object *job, *template;

	if (!spec)
		return p->build->errors->err;
	template = spec_tree_map();
	spec_tree_add(template, "spec", spec);
	job = spec_tree_map();
	spec_tree_text(job, "name", name);
	spec_tree_number(job, "replicas", 1);
	spec_tree_add(job, "template", template);
	spec_tree_append(p->parts, job);
	return 0;
}

static struct json_object *make_object(struct spec_pods *p)
{
	struct json_object *ret = indexed_object(p), *spec = spec_tree_map(),
			   *policy = spec_tree_map();
	const struct spec_app *app = p->build->app;
	int64_t least = INT32_MAX;

	/*
	 * The controller may restart the whole job only as often as all roles allow. A role that
	 * retries single replicas allows no restart of the whole job.
	 */
	for (size_t i = 0; i < app->n_roles; i++)
		least = min_of(least, app->roles[i].retry_policy == SPEC_RETRY_APPLICATION
					      ? (int64_t)app->roles[i].max_retries
					      : 0);
	spec_tree_number(policy, "maxRestarts", max_of(least, INT64_C(0)));
	spec_tree_add(spec, "failurePolicy", policy);
	spec_build_ttl(p->build, spec);
	/* Host names must work before the replicas are ready. */
	spec_tree_add(spec, "network",
		      spec_tree_parse("{\"enableDNSHostnames\": true,"
				      " \"publishNotReadyAddresses\": true}"));
	spec_tree_add(spec, "replicatedJobs", json_object_get(p->parts));
	spec_tree_add(ret, "spec", spec);
	return ret;
}

static int jobset_build(struct spec_build *b)
{
	struct spec_pods pods cleanup(spec_pods_clear) = {.build = b};
	cleanup_free char *first = spec_name_norm(b->app->roles[0].name);
	int ret = spec_build_begin(b, "JobSet");

	/* The pod of rank 0 has the host name JOB-ROLE-0-0 and the subdomain JOB. */
	indexed_init(&pods, text_print("%s-%s-0-0.%s", b->id, first, b->id));
	for (size_t i = 0; i < b->app->n_roles; i++) {
		int err = add_job(&pods, i);

		ret = ret ? ret : err;
	}
	if (ret)
		return ret;
	b->object = make_object(&pods);
	return 0;
}

/*
 * Read what the kind file can't express: how often the Jobs of a JobSet retry single pods. If the
 * JobSet may be restarted as a whole, kxfs counts only these restarts as retries.
 */
static void jobset_hook(const struct spec_value *object, struct spec_job_view *v)
{
	const struct spec_value *spec = spec_read_map(object, "spec");
	const struct spec_value *jobs = spec_read_list(spec, "replicatedJobs");
	int all = spec_read_int(spec_read_map(spec, "failurePolicy"), "maxRestarts", 0);
	int alone = 0;
	bool pods = false;

	for (size_t i = 0; i < spec_read_count(jobs); i++) {
		const struct spec_value *template =
			spec_read_map(spec_read_at(jobs, i), "template");
		const struct spec_value *job = spec_read_map(template, "spec");

		alone = max_of(alone, spec_read_int(job, "backoffLimitPerIndex", 0));
		pods |= spec_read_int(job, "backoffLimit", 6) > 0; /* 6 is the server's default */
	}
	v->alone = all == 0 && alone > 0;
	v->max_retries = (unsigned)(v->alone ? alone : all);
	v->restarts = all > 0 || alone > 0 || pods;
	v->uncounted = pods && !v->alone;
}

const struct spec_kind spec_jobset = {
	.name = "jobset",
	.scheduler = "jobset",
	.pods_also = INDEXED_POD_SELECTOR,
	.one_template = true,
	.options = jobset_options,
	.pod_name_len = jobset_pod_name_len,
	.build = jobset_build,
	.hook = jobset_hook,
};

/* --- batch Job --- */

/*
 * What to use instead for an AppDef that a batch Job can't run. A batch Job has only one role, its
 * pods have no DNS names, and it can't restart all pods together. Its advantage is that every
 * cluster serves it.
 */
#define ELSEWHERE "the scheduler jobset or volcano"

static const struct spec_option job_options[] = {
	INDEXED_OPTIONS,
	{.name = "parallelism",
	 .type = SPEC_OPTION_INT,
	 .min = 1,
	 .max = INT32_MAX,
	 .help = "how many replicas run at the same time; the rest wait"},
	{0},
};

/*
 * Two names must fit a label. The host name is APP-SUFFIX-K, and the container's name is ROLE. The
 * names of pods may be longer, because the Job controller shortens them.
 */
static size_t job_pod_name_len(size_t app, size_t role, size_t k, size_t last)
{
	return max_of(app + 1 + (SPEC_SUFFIX_MAX - 1) + 1 + spec_pods_digits(k), role);
}

/* True if TEXT (or NULL) contains the macro rank0_env. */
static bool names_rank0(const char *text)
{
	const struct spec_macros without = {"", "", "", "", ""}, with = {"", "", "", "", "x"};
	cleanup_free char *one = text ? spec_macro_expand(text, &without) : NULL;
	cleanup_free char *two = text ? spec_macro_expand(text, &with) : NULL;

	return text && !streq(one, two);
}

static int check_rank0(struct spec_build *b, const char *text, const char *path)
{
	return names_rank0(text)
		       ? spec_build_refuse(
				 b, path,
				 "${rank0_env} is not available: pods of a batch Job have no "
				 "DNS names; if several replicas need it, use " ELSEWHERE)
		       : 0;
}

/* Refuse an AppDef that a batch Job can't run: return 0, or the errno of the build's errors. */
static int check_replicas(struct spec_build *b)
{
	const struct spec_role *role = &b->app->roles[0];
	char path[64];
	int ret = 0;

	if (b->app->n_roles > 1)
		return spec_build_refuse(
			b, "roles[1]",
			"a batch Job has only one role; for several roles, use " ELSEWHERE);
	if (role->max_retries > 0 && role->retry_policy == SPEC_RETRY_HOT_SPARE)
		return spec_build_refuse(b, "roles[0].retry_policy",
					 "a batch Job does not support %s: use REPLICA, or "
					 "max_retries: 0",
					 spec_retry_name(role->retry_policy));
	if (role->num_replicas == 1)
		return 0;
	if (role->max_retries > 0 && role->retry_policy != SPEC_RETRY_REPLICA)
		ret = spec_build_refuse(
			b, "roles[0].max_retries",
			"a batch Job can't restart all replicas, as %s requests: use "
			"retry_policy: REPLICA, or max_retries: 0; otherwise use " ELSEWHERE,
			spec_retry_name(role->retry_policy));
	for (size_t i = 0; i < role->n_args; i++) {
		snprintf(path, sizeof(path), "roles[0].args[%zu]", i);
		ret = check_rank0(b, role->args[i], path) ? -EINVAL : ret;
	}
	for (size_t i = 0; i < role->env.n; i++)
		ret = check_rank0(b, role->env.v[i].value, "roles[0].env") ? -EINVAL : ret;
	return check_rank0(b, role->metadata, "roles[0].metadata") ? -EINVAL : ret;
}

/*
 * With the policy REPLICA, each replica has its own number of retries. With other policies, all
 * replicas share one number, and a failure after the last retry ends the job.
 */
static void job_retries(struct json_object *spec, const struct spec_role *role)
{
	spec_tree_number(spec,
			 role->retry_policy == SPEC_RETRY_REPLICA ? "backoffLimitPerIndex"
								  : "backoffLimit",
			 role->max_retries);
	/* Replace a pod only when it has ended. */
	spec_tree_text(spec, "podReplacementPolicy", "Failed");
}

static int job_build(struct spec_build *b)
{
	struct spec_pods pods cleanup(spec_pods_clear) = {.build = b};
	int64_t replicas = b->app->roles[0].num_replicas, parallelism = replicas;
	struct json_object *spec;
	int err = check_replicas(b);

	if (err)
		return err;
	spec_options_int(b->options, "parallelism", &parallelism);
	b->id = spec_name_job(b->app->name, b->identity->random[0]);
	indexed_init(&pods, replicas == 1 ? text_copy("localhost") : NULL);
	spec = indexed_job(&pods, 0, min_of(parallelism, replicas), job_retries);
	if (!spec)
		return b->errors->err;
	spec_build_ttl(b, spec);
	b->object = indexed_object(&pods);
	spec_tree_add(b->object, "spec", spec);
	return 0;
}

/* --- reading a batch Job: what its kind file can't express --- */

/* Add details to the reason for a failure. */
static void explain(struct spec_job_view *v, const struct spec_value *status)
{
	const char *indexes = spec_read_text(status, "failedIndexes");
	cleanup_free char *text = text_print("%s%s%s", v->message, *indexes ? ": " : "", indexes);

	spec_read_copy(&v->message, text, READ_MAX_MESSAGE);
	v->used_up = streq(v->reason, "BackoffLimitExceeded");
	if (strncmp(v->phase, "Terminat", strlen("Terminat")) != 0)
		return;
	spec_set(&v->reason, "Terminated");
	spec_set(&v->message, "it was terminated through ctl");
}

static void job_hook(const struct spec_value *object, struct spec_job_view *v)
{
	const struct spec_value *status = spec_read_map(object, "status");
	const struct spec_value *met = spec_view_condition(status, "SuccessCriteriaMet");

	if (*v->reason && !streq(v->phase, "Suspended"))
		explain(v, status);
	/* With a successPolicy, a job can succeed although pods failed. Show only this reason. */
	if (spec_view_is_true(met) && streq(spec_read_text(met, "reason"), "SuccessPolicy")) {
		spec_set(&v->reason, "SuccessPolicy");
		spec_read_copy_message(&v->message, met);
	}
	/* In this phase, the job is over, but still lacks the final condition. */
	v->over |= streq(v->phase, "SuccessCriteriaMet");
	/* A podFailurePolicy may forbid retries after some exit codes. */
	v->remakes = v->restarts && (v->alone || v->retries <= v->max_retries) &&
		     !spec_read_map(spec_read_map(object, "spec"), "podFailurePolicy");
}

const struct spec_kind spec_job = {
	.name = "job",
	.scheduler = "job",
	.one_template = true,
	.options = job_options,
	.pod_name_len = job_pod_name_len,
	.build = job_build,
	.hook = job_hook,
};
