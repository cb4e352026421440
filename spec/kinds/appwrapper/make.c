/* SPDX-License-Identifier: MIT */
/*
 * AppWrapper v1beta2, the successor of MCAD's: each pod, pod group and service is a component. It
 * has no queue of its own. With Kueue, a label selects one of Kueue's queues, and Kueue's webhook
 * then sets spec.suspend until there is quota.
 */
#include "spec/kinds/appwrapper/make.h"
#include "spec/kinds/kinds.h"
#include "spec/pods/wrap.h"

static const struct spec_option options[] = {
	{.name = "queue", .type = SPEC_OPTION_NAME, .help = "queue of Kueue that jobs wait in"},
	WRAP_OPTIONS,
	{.name = "no_annotations",
	 .type = SPEC_OPTION_BOOL,
	 .help = "leave the annotations and the label kxfs/... out"},
	{0},
};

/* Later controllers find the pods of a component themselves; earlier ones need them listed. */
static struct json_object *make_component(struct json_object *object, bool is_pod)
{
	struct json_object *component = spec_tree_map(), *sets = spec_tree_list(1);

	if (is_pod) {
		struct json_object *set = spec_tree_map();

		spec_tree_number(set, "replicas", 1);
		spec_tree_text(set, "path", "template");
		spec_tree_append(sets, set);
	}
	spec_tree_add(component, "podSets", sets);
	spec_tree_add(component, "template", object);
	return component;
}

static struct json_object *make_object(struct wrap *w)
{
	const struct spec_build *b = w->build;
	const char *queue = spec_options_text(b->options, "queue");
	struct json_object *spec = spec_tree_map(), *notes = spec_tree_map(), *metadata;
	struct json_object *ret = wrap_object(w, b->kind->api_version, b->kind->kind,
					      spec_tree_string(b->id), &metadata);

	if (queue && *queue)
		spec_build_queue(b, spec_tree_add(metadata, "labels", spec_tree_map()));
	/* The controller's default is three retries. */
	spec_tree_add(notes, APPWRAPPER_RETRIES,
		      spec_tree_format("%lld", (long long)spec_pods_least_retries(b->app)));
	spec_tree_add(metadata, "annotations", notes);
	spec_tree_add(ret, "metadata", metadata);
	spec_tree_add(spec, "components", json_object_get(w->items));
	spec_tree_add(ret, "spec", spec);
	return ret;
}

static int appwrapper_build(struct spec_build *b)
{
	return wrap_build(b, make_component, make_object);
}

const struct spec_kind spec_appwrapper = {
	.name = "appwrapper",
	.source = "mcad",
	.jobs = "AppWrappers",
	.also = "mcad",
	.scheduler = "kubernetes_mcad",
	.api_version = "workload.codeflare.dev/v1beta2",
	.kind = "AppWrapper",
	.plural = "appwrappers",
	.pod_selector = "workload.codeflare.dev/appwrapper",
	.templates = (const struct spec_template[]){{"spec.components", "template", false}, {0}},
	.in_kueue = true,
	.options = options,
	.build = appwrapper_build,
	.reader = &spec_appwrapper_reader,
	.control = &spec_appwrapper_control,
};
