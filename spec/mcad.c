/* SPDX-License-Identifier: MIT */
/*
 * MCAD's AppWrapper (v1beta1): pod groups, pods and one headless service as generic items.
 */
#include "spec/view_impl.h"
#include "spec/wrap.h"

static const struct spec_option options[] = {
	WRAP_OPTIONS,
	{.name = "priority",
	 .type = SPEC_OPTION_INT,
	 .min = INT32_MIN,
	 .max = INT32_MAX,
	 .help = "priority of jobs in MCAD's queue"},
	{.name = "no_annotations",
	 .type = SPEC_OPTION_BOOL,
	 .help = "leave the annotations kxfs/... out"},
	{0},
};

static struct json_object *make_item(struct spec_tree *t, struct json_object *object, bool is_pod)
{
	struct json_object *item = spec_tree_map(t);

	(void)is_pod;
	spec_tree_add(t, item, "replicas", spec_tree_int(t, 1));
	spec_tree_add(t, item, "generictemplate", object);
	return item;
}

static void put_retries(struct wrap *w, struct json_object *spec)
{
	const struct spec_app *app = w->build->app;
	struct spec_tree *t = &w->pods.tree;
	struct json_object *scheduling, *requeuing;
	int64_t retries = wrap_retries(w), total = 0;

	for (size_t i = 0; i < app->n_roles; i++)
		total += app->roles[i].num_replicas;
	if (retries == 0)
		return;
	scheduling = spec_tree_map(t);
	requeuing = spec_tree_map(t);
	spec_tree_add(t, requeuing, "timeInSeconds", spec_tree_int(t, 300));
	spec_tree_add(t, requeuing, "maxTimeInSeconds", spec_tree_int(t, 0));
	spec_tree_add(t, requeuing, "growthType", spec_tree_string(t, "exponential"));
	spec_tree_add(t, requeuing, "maxNumRequeuings", spec_tree_int(t, retries));
	spec_tree_add(t, scheduling, "minAvailable", spec_tree_int(t, total));
	spec_tree_add(t, scheduling, "requeuing", requeuing);
	spec_tree_add(t, spec, "schedulingSpec", scheduling);
}

static struct json_object *make_object(struct wrap *w)
{
	const struct spec_build *b = w->build;
	struct spec_tree *t = &w->pods.tree;
	struct json_object *spec = spec_tree_map(t), *resources = spec_tree_map(t), *metadata;
	struct json_object *ret = wrap_object(w, b->kind->api_version, b->kind->kind,
					      spec_tree_string(t, b->id), &metadata);
	int64_t priority;

	spec_tree_add(t, ret, "metadata", metadata);
	if (spec_options_int(b->options, "priority", &priority))
		spec_tree_add(t, spec, "priority", spec_tree_int(t, priority));
	put_retries(w, spec);
	spec_tree_add(t, resources, "GenericItems", json_object_get(w->items));
	spec_tree_add(t, spec, "resources", resources);
	spec_tree_add(t, ret, "spec", spec);
	return ret;
}

static int mcad_build(struct spec_build *b)
{
	struct wrap w cleanup(wrap_clear) = {.build = b, .item = make_item};
	int err = wrap_all(&w);

	if (err)
		return err;
	b->object = make_object(&w);
	return w.pods.tree.failed ? spec_build_no_memory(b) : 0;
}

const struct spec_kind spec_mcad = {
	.name = "mcad",
	.scheduler = "kubernetes_mcad",
	.api_version = "workload.codeflare.dev/v1beta1",
	.kind = "AppWrapper",
	.plural = "appwrappers",
	.pod_selector = "",
	.options = options,
	.build = mcad_build,
	.reader = &spec_mcad_reader,
};
