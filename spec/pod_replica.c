/* SPDX-License-Identifier: MIT */
/*
 * One replica's pod: what its role shares, with the macros of this replica filled in, the overlay, and TorchX's
 * labels over that.
 */
#include <errno.h>

#include "spec/macro.h"
#include "spec/overlay.h"
#include "spec/pod_parts.h"

static struct json_object *expand(struct spec_tree *t, const char *text,
				  const struct spec_macros *m)
{
	char *expanded cleanup_free = spec_macro_expand(text, m);

	if (!expanded) {
		t->failed = true;
		return NULL;
	}
	return spec_tree_string(t, expanded);
}

static struct json_object *make_command(struct spec_pod_role *r, const struct spec_macros *m)
{
	struct spec_tree *t = &r->pods->tree;
	struct json_object *ret;

	if (r->command)
		return json_object_get(r->command);
	ret = spec_tree_list(t, r->role->n_args + 1);
	spec_tree_append(t, ret, spec_tree_string(t, r->role->entrypoint));
	for (size_t i = 0; i < r->role->n_args; i++)
		spec_tree_append(t, ret, expand(t, r->role->args[i], m));
	return ret;
}

static struct json_object *expand_variable(struct spec_tree *t, const struct spec_pair *pair,
					   const struct spec_macros *m)
{
	char *value cleanup_free = spec_macro_expand(pair->value, m);

	if (!value) {
		t->failed = true;
		return NULL;
	}
	return pod_variable(t, pair->key, value);
}

/*
 * The user's variables in their order, then TorchX's. One of TorchX's that the user has set too
 * stands where the user put it, with TorchX's value.
 */
static struct json_object *make_env(struct spec_pod_role *r, bool rank0,
				    const struct spec_macros *m)
{
	const struct spec_map *env = &r->role->env;
	struct spec_pods *p = r->pods;
	struct spec_tree *t = &p->tree;
	struct json_object *ret = spec_tree_list(t, env->n + 4);
	bool has_job_id = false, has_rank0 = false;

	for (size_t i = 0; i < env->n; i++) {
		has_job_id |= streq(env->v[i].key, POD_JOB_ID);
		if (rank0 && streq(env->v[i].key, POD_RANK0_HOST)) {
			has_rank0 = true;
			spec_tree_append(t, ret, json_object_get(p->rank0));
		} else if (r->env[i]) {
			spec_tree_append(t, ret, json_object_get(r->env[i]));
		} else {
			spec_tree_append(t, ret, expand_variable(t, &env->v[i], m));
		}
	}
	if (!has_job_id)
		spec_tree_append(t, ret, json_object_get(p->job_id));
	if (rank0 && !has_rank0)
		spec_tree_append(t, ret, json_object_get(p->rank0));
	for (size_t i = 0; r->more_env && i < json_object_array_length(r->more_env); i++)
		spec_tree_append(t, ret,
				 json_object_get(json_object_array_get_idx(r->more_env, i)));
	return ret;
}

static struct json_object *make_spec(struct spec_pod_role *r, unsigned k, const char *name)
{
	struct spec_pods *p = r->pods;
	struct spec_tree *t = &p->tree;
	bool rank0 = r->index == 0 && k == 0;
	struct json_object *ret, *container = spec_tree_map(t), *containers = spec_tree_list(t, 1);
	struct spec_macros m = {
		.app_id = p->build->id,
		.img_root = "",
		.base_img_root = "DEPRECATED",
		.rank0_env = rank0 ? POD_RANK0_HOST : p->rank0_env,
	};
	char replica_id[16];

	snprintf(replica_id, sizeof(replica_id), "%u", k);
	m.replica_id = replica_id;
	spec_tree_add(t, container, "name", spec_tree_string(t, name));
	spec_tree_add(t, container, "image", json_object_get(r->image));
	spec_tree_add(t, container, "command", make_command(r, &m));
	spec_tree_add(t, container, "env", make_env(r, rank0, &m));
	spec_tree_add_all(t, container, r->container);
	spec_tree_append(t, containers, container);
	ret = spec_tree_map(t);
	spec_tree_add(t, ret, "containers", containers);
	spec_tree_add_all(t, ret, r->spec);
	return ret;
}

/* TorchX's labels win over the overlay's. */
static int set_labels(struct spec_pod_role *r, struct json_object *metadata, unsigned k)
{
	struct spec_tree *t = &r->pods->tree;
	struct json_object *labels = spec_tree_map(t),
			   *theirs = json_object_object_get(metadata, "labels");
	char *path cleanup_free = NULL;

	if (theirs && !json_object_is_type(theirs, json_type_object)) {
		json_object_put(labels);
		if (asprintf(&path, "%s.metadata.labels", r->overlay_path) < 0) {
			path = NULL;
			return spec_build_no_memory(r->pods->build);
		}
		return spec_build_refuse(r->pods->build, path, "must be a map");
	}
	if (theirs) {
		json_object_object_foreach(theirs, name, value) {
			if (value)
				spec_tree_set(t, labels, name, json_object_get(value));
		}
	}
	json_object_object_foreach(r->labels, key, own)
		spec_tree_set(t, labels, key, json_object_get(own));
	spec_tree_set(t, labels, "torchx.pytorch.org/replica-id", spec_tree_format(t, "%u", k));
	spec_tree_set(t, metadata, "labels", labels);
	return 0;
}

struct json_object *spec_pod_make(struct spec_pod_role *r, unsigned k, const char *name)
{
	struct spec_pods *p = r->pods;
	struct spec_tree *t = &p->tree;
	struct json_object *pod cleanup_json = spec_tree_map(t), *metadata = spec_tree_map(t);

	spec_tree_add(t, metadata, "annotations", json_object_get(p->annotations));
	spec_tree_add(t, pod, "metadata", metadata);
	spec_tree_add(t, pod, "spec", make_spec(r, k, name));
	if (t->failed)
		return NULL;
	if (r->overlay) {
		struct json_object *overlaid;

		if (spec_overlay_apply(pod, r->overlay, r->overlay_path, &overlaid,
				       p->build->errors) < 0)
			return NULL;
		json_object_put(pod);
		pod = overlaid;
	}
	if (set_labels(r, json_object_object_get(pod, "metadata"), k) < 0 || t->failed)
		return NULL;
	return take_ptr(pod);
}
