/* SPDX-License-Identifier: MIT */
/*
 * AppWrapper v1beta2, which has taken MCAD's place: each pod, pod group and service is a component. It
 * has no queue of its own; where Kueue runs, a label chooses one of Kueue's, and Kueue's webhook then
 * sets spec.suspend until there is room.
 */
#include "spec/appwrapper.h"
#include "spec/control.h"
#include "spec/view_impl.h"
#include "spec/wrap.h"

static const struct spec_option options[] = {
	{.name = "queue", .type = SPEC_OPTION_NAME, .help = "queue of Kueue that jobs wait in"},
	WRAP_OPTIONS,
	{.name = "no_annotations",
	 .type = SPEC_OPTION_BOOL,
	 .help = "leave the annotations kxfs/... out"},
	{0},
};

/* The pods of a pod need not be declared to later controllers; earlier ones infer nothing. */
static struct json_object *make_component(struct spec_tree *t, struct json_object *object,
					  bool is_pod)
{
	struct json_object *component = spec_tree_map(t), *sets = spec_tree_list(t, 1);

	if (is_pod) {
		struct json_object *set = spec_tree_map(t);

		spec_tree_add(t, set, "replicas", spec_tree_int(t, 1));
		spec_tree_add(t, set, "path", spec_tree_string(t, "template"));
		spec_tree_append(t, sets, set);
	}
	spec_tree_add(t, component, "podSets", sets);
	spec_tree_add(t, component, "template", object);
	return component;
}

static void put_queue(struct wrap *w, struct json_object *metadata)
{
	const char *queue = spec_options_text(w->build->options, "queue");
	struct spec_tree *t = &w->pods.tree;
	struct json_object *labels;

	if (!queue || !*queue)
		return;
	labels = spec_tree_map(t);
	spec_tree_add(t, labels, APPWRAPPER_QUEUE, spec_tree_string(t, queue));
	spec_tree_add(t, metadata, "labels", labels);
}

/* Unasked, the controller would try three times more. */
static void put_retries(struct wrap *w, struct json_object *metadata)
{
	struct spec_tree *t = &w->pods.tree;
	struct json_object *notes = spec_tree_map(t);

	spec_tree_add(t, notes, APPWRAPPER_RETRIES,
		      spec_tree_format(t, "%lld", (long long)wrap_retries(w)));
	spec_tree_add(t, metadata, "annotations", notes);
}

static struct json_object *make_object(struct wrap *w)
{
	const struct spec_build *b = w->build;
	struct spec_tree *t = &w->pods.tree;
	struct json_object *spec = spec_tree_map(t), *metadata;
	struct json_object *ret = wrap_object(w, b->kind->api_version, b->kind->kind,
					      spec_tree_string(t, b->id), &metadata);

	put_queue(w, metadata);
	put_retries(w, metadata);
	spec_tree_add(t, ret, "metadata", metadata);
	spec_tree_add(t, spec, "components", json_object_get(w->items));
	spec_tree_add(t, ret, "spec", spec);
	return ret;
}

static int appwrapper_build(struct spec_build *b)
{
	struct wrap w cleanup(wrap_clear) = {.build = b, .item = make_component};
	int err = wrap_all(&w);

	if (err)
		return err;
	b->object = make_object(&w);
	return w.pods.tree.failed ? spec_build_no_memory(b) : 0;
}

const struct spec_kind spec_appwrapper = {
	.name = "appwrapper",
	.also = "mcad",
	.scheduler = "kubernetes_mcad",
	.api_version = "workload.codeflare.dev/v1beta2",
	.kind = "AppWrapper",
	.plural = "appwrappers",
	.pod_selector = "workload.codeflare.dev/appwrapper",
	.options = options,
	.build = appwrapper_build,
	.reader = &spec_appwrapper_reader,
	.control = &spec_appwrapper_control,
};
