/* SPDX-License-Identifier: MIT */
/*
 * A batch Job of Kubernetes itself, which every cluster serves: the only role of the AppDef is an
 * Indexed Job. Its pods have no DNS names, and the controller can't restart all of them together.
 * AppDefs that need either are refused here.
 */
#include <errno.h>

#include "spec/app/macro.h"
#include "spec/base/name.h"
#include "spec/kinds/job/hook.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/indexed.h"

#define ELSEWHERE "jobset or volcano"

static const struct spec_option options[] = {
	INDEXED_OPTIONS,
	{.name = "parallelism",
	 .type = SPEC_OPTION_INT,
	 .min = 1,
	 .max = INT32_MAX,
	 .help = "how many replicas run at a time; the rest wait"},
	{0},
};

/*
 * Two names must be labels: APP-SUFFIX-K, the host of a pod, whose name is shortened to fit; and
 * ROLE, its container.
 */
static size_t pod_name_len(size_t app, size_t role, size_t k, size_t last)
{
	return max_of(app + 1 + (SPEC_SUFFIX_MAX - 1) + 1 + spec_pods_digits(k), role);
}

/* True if TEXT, unless it is NULL, names the variable of rank 0's host. */
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
				 "names in DNS; for several replicas that need it, use " ELSEWHERE)
		       : 0;
}

/* Check the replicas. 0, or an errno that is in the build's errors. */
static int check_replicas(struct spec_build *b)
{
	const struct spec_role *role = &b->app->roles[0];
	char path[64];
	int ret = 0;

	if (b->app->n_roles > 1)
		return spec_build_refuse(b, "roles[1]",
					 "a batch Job has one role; several need " ELSEWHERE);
	if (role->max_retries > 0 && role->retry_policy == SPEC_RETRY_HOT_SPARE)
		return spec_build_refuse(b, "roles[0].retry_policy",
					 "a batch Job can't do %s: use REPLICA, or max_retries: 0",
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
 * With the policy REPLICA each replica has its own retries; otherwise the first replica that fails
 * for good ends the job.
 */
static void put_retries(struct json_object *spec, const struct spec_role *role)
{
	spec_tree_number(spec,
			 role->retry_policy == SPEC_RETRY_REPLICA ? "backoffLimitPerIndex"
								  : "backoffLimit",
			 role->max_retries);
	/* Two pods of one replica never run at the same time. */
	spec_tree_text(spec, "podReplacementPolicy", "Failed");
}

static int job_build(struct spec_build *b)
{
	struct spec_pods pods cleanup(spec_pods_clear) = {0};
	int64_t replicas = b->app->roles[0].num_replicas, parallelism = replicas;
	struct json_object *spec;
	int err = check_replicas(b);

	if (err)
		return err;
	spec_options_int(b->options, "parallelism", &parallelism);
	b->id = spec_name_job(b->app->name, b->identity->random[0]);
	indexed_init(&pods, b, replicas == 1 ? "localhost" : NULL);
	spec = indexed_job(&pods, 0, min_of(parallelism, replicas), put_retries);
	if (!spec)
		return b->errors->err;
	spec_build_ttl(b, spec);
	b->object = indexed_object(&pods);
	spec_tree_add(b->object, "spec", spec);
	return 0;
}

/* share/kinds/job.yaml describes how its objects are read. */
const struct spec_kind spec_job = {
	.name = "job",
	.scheduler = "job",
	.one_template = true,
	.options = options,
	.pod_name_len = pod_name_len,
	.build = job_build,
	.hook = job_hook,
};
