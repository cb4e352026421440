/* SPDX-License-Identifier: MIT */
/*
 * MCAD's AppWrapper (v1beta1): pod groups, pods and one headless service as generic items.
 */
#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/wrap.h"

static const struct spec_option options[] = {
	WRAP_OPTIONS,
	{.name = "priority",
	 .type = SPEC_OPTION_INT,
	 .min = INT32_MIN,
	 .max = INT32_MAX,
	 .help = "priority of jobs in MCAD's queue"},
	{.name = "no_annotations",
	 .type = SPEC_OPTION_BOOL,
	 .help = "leave the annotations and the label kxfs/... out"},
	{0},
};

static struct json_object *make_item(struct json_object *object, bool is_pod)
{
	struct json_object *item = spec_tree_map();

	spec_tree_number(item, "replicas", 1);
	spec_tree_add(item, "generictemplate", object);
	return item;
}

static void put_retries(struct wrap *w, struct json_object *spec)
{
	const struct spec_app *app = w->build->app;
	long long retries = spec_pods_least_retries(w->build->app), pods = 0;
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

static struct json_object *make_object(struct wrap *w)
{
	const struct spec_build *b = w->build;
	struct json_object *spec = spec_tree_map(), *resources = spec_tree_map(), *metadata;
	struct json_object *ret = wrap_object(w, b->kind->api_version, b->kind->kind,
					      spec_tree_string(b->id), &metadata);
	int64_t priority;

	spec_tree_add(ret, "metadata", metadata);
	if (spec_options_int(b->options, "priority", &priority))
		spec_tree_number(spec, "priority", priority);
	put_retries(w, spec);
	spec_tree_add(resources, "GenericItems", json_object_get(w->items));
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
	.templates = (const struct spec_template[]){{"spec.resources.GenericItems",
						     "generictemplate", false},
						    {0}},
	.options = options,
	.build = mcad_build,
	.reader = &spec_mcad_reader,
};
