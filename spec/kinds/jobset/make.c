/* SPDX-License-Identifier: MIT */
/* JobSet v1alpha2: a replicated job for each role, which is one Indexed Job. */
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/indexed.h"

#define POD_SUFFIX 6 /* "-x7k2p", which the Job controller appends to the names of pods */

static const struct spec_option options[] = {INDEXED_OPTIONS, {0}};

struct jobset {
	struct spec_build *build;
	struct spec_pods pods;
	struct json_object *jobs; /* the replicated jobs */
	char *rank0_host;
};

static void jobset_clear(struct jobset *j)
{
	spec_pods_clear(&j->pods);
	json_object_put(j->jobs);
	free(j->rank0_host);
}

/* APP-SUFFIX-ROLE-0-K-xxxxx: JobSet's webhook refuses a job with a pod whose name would be longer than a label. */
static size_t pod_name_len(size_t app, size_t role, size_t k, size_t last)
{
	return app + 1 + (SPEC_SUFFIX_MAX - 1) + 1 + role + strlen("-0-") + spec_pods_digits(k) +
	       POD_SUFFIX;
}

/* The first replica that fails for good ends its job, and with it the JobSet, or the attempt. */
static void put_retries(struct json_object *spec, const struct spec_role *role)
{
	if (role->retry_policy == SPEC_RETRY_REPLICA && role->max_retries > 0) {
		spec_tree_number(spec, "backoffLimitPerIndex", role->max_retries);
		spec_tree_number(spec, "maxFailedIndexes", 0);
	} else {
		spec_tree_number(spec, "backoffLimit", 0);
	}
}

static int add_job(struct jobset *j, size_t index)
{
	const struct spec_role *role = &j->build->app->roles[index];
	cleanup_free char *name = spec_name_norm(role->name);
	struct json_object *spec = indexed_job(&j->pods, index, role->num_replicas, put_retries);
	struct json_object *job, *template;

	if (!spec)
		return j->build->errors->err;
	template = spec_tree_map();
	spec_tree_add(template, "spec", spec);
	job = spec_tree_map();
	spec_tree_text(job, "name", name);
	spec_tree_number(job, "replicas", 1);
	spec_tree_add(job, "template", template);
	spec_tree_append(j->jobs, job);
	return 0;
}

static struct json_object *make_object(struct jobset *j)
{
	struct json_object *ret = indexed_object(&j->pods), *spec = spec_tree_map(),
			   *policy = spec_tree_map();
	const struct spec_app *app = j->build->app;
	int64_t least = INT32_MAX;

	/*
	 * How often the whole job is restarted: the least number that a role allows. A role that
	 * retries its replicas allows none.
	 */
	for (size_t i = 0; i < app->n_roles; i++)
		least = min_of(least, app->roles[i].retry_policy == SPEC_RETRY_APPLICATION
					      ? (int64_t)app->roles[i].max_retries
					      : 0);
	spec_tree_number(policy, "maxRestarts", max_of(least, INT64_C(0)));
	spec_tree_add(spec, "failurePolicy", policy);
	spec_build_ttl(j->build, spec);
	/* Replicas must find each other before they are ready. */
	spec_tree_add(spec, "network",
		      spec_tree_parse("{\"enableDNSHostnames\": true,"
				      " \"publishNotReadyAddresses\": true}"));
	spec_tree_add(spec, "replicatedJobs", json_object_get(j->jobs));
	spec_tree_add(ret, "spec", spec);
	return ret;
}

static int jobset_build(struct spec_build *b)
{
	struct jobset j cleanup(jobset_clear) = {.build = b};
	cleanup_free char *first = spec_name_norm(b->app->roles[0].name);
	int ret = spec_build_name(b, "JobSet");

	/* Name of a pod's host, and the subdomain, which JobSet calls after the job. */
	j.rank0_host = text_print("%s-%s-0-0.%s", b->id, first, b->id);
	j.jobs = spec_tree_list(b->app->n_roles);
	indexed_init(&j.pods, b, j.rank0_host);
	for (size_t i = 0; i < b->app->n_roles; i++) {
		int err = spec_build_retries(b, i, "JobSet");
		int err2 = add_job(&j, i);

		ret = ret ? ret : err ? err : err2;
	}
	if (ret)
		return ret;
	b->object = make_object(&j);
	return 0;
}

/* share/kinds/jobset.yaml describes how its objects are read. */
const struct spec_kind spec_jobset = {
	.name = "jobset",
	.scheduler = "jobset",
	.pods_also = INDEXED_POD_SELECTOR,
	.one_template = true,
	.options = options,
	.pod_name_len = pod_name_len,
	.build = jobset_build,
};
