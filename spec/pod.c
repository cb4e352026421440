/* SPDX-License-Identifier: MIT */
/*
 * The pods of a job: what all of them share, and those of a role. Order and spelling of everything is TorchX's;
 * docs/deviations.md lists what is not. The pod of one replica: pod_replica.c.
 */
#include "spec/pod.h"

#include <errno.h>

#include "spec/label.h"
#include "spec/overlay.h"
#include "spec/pod_parts.h"

#define FIELD_PATH "[FIELD_PATH]" /* a value that begins so names a field of the pod */

int spec_build_refuse(struct spec_build *b, const char *path, const char *fmt, ...)
{
	char *text cleanup_free = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = base_vformat(fmt, ap);
	va_end(ap);
	if (!text) {
		return spec_build_no_memory(b);
	}
	return spec_errors_add(b->errors, -EINVAL, 0, 0, path, "%s", text);
}

int spec_build_no_memory(struct spec_build *b)
{
	return spec_errors_add(b->errors, -ENOMEM, 0, 0, "", "out of memory");
}

static struct json_object *label(struct spec_tree *t, const char *value)
{
	char *clean cleanup_free = spec_label_clean(value);

	if (!clean) {
		t->failed = true;
		return NULL;
	}
	return spec_tree_string(t, clean);
}

struct json_object *pod_variable(struct spec_tree *t, const char *name, const char *value)
{
	struct json_object *ret = spec_tree_map(t), *source, *field;

	spec_tree_add(t, ret, "name", spec_tree_string(t, name));
	if (strncmp(value, FIELD_PATH, strlen(FIELD_PATH)) != 0) {
		spec_tree_add(t, ret, "value", spec_tree_string(t, value));
		return ret;
	}
	field = spec_tree_map(t);
	spec_tree_add(t, field, "fieldPath", spec_tree_string(t, value + strlen(FIELD_PATH)));
	source = spec_tree_map(t);
	spec_tree_add(t, source, "fieldRef", field);
	spec_tree_add(t, ret, "valueFrom", source);
	return ret;
}

/* --- the job -------------------------------------------------------------------------------- */

struct json_object *spec_pods_object_labels(struct spec_pods *p)
{
	struct json_object *ret = spec_tree_map(&p->tree);

	spec_tree_add(&p->tree, ret, "app.kubernetes.io/name", label(&p->tree, p->app_name));
	spec_tree_add(&p->tree, ret, "app.kubernetes.io/managed-by",
		      spec_tree_string(&p->tree, "torchx.pytorch.org"));
	spec_tree_add(&p->tree, ret, "app.kubernetes.io/instance",
		      spec_tree_string(&p->tree, p->build->id));
	return ret;
}

int spec_pods_init(struct spec_pods *p)
{
	const struct spec_build *b = p->build;
	struct spec_tree *t = &p->tree;
	char *handle cleanup_free = NULL;

	if (asprintf(&handle, "%s://torchx/%s:%s", b->kind->scheduler, b->identity->namespace,
		     b->id) < 0) {
		handle = NULL;
		return spec_build_no_memory(p->build);
	}
	p->job_id = pod_variable(t, POD_JOB_ID, handle);
	p->rank0 = pod_variable(t, POD_RANK0_HOST, "localhost");
	p->labels = spec_pods_object_labels(p);
	spec_tree_add(t, p->labels, "torchx.pytorch.org/version",
		      spec_tree_string(t, POD_TORCHX_VERSION));
	spec_tree_add(t, p->labels, "torchx.pytorch.org/app-name", label(t, p->app_name));
	p->annotations = spec_tree_map(t);
	/* A sidecar would go on when the replica has finished. */
	spec_tree_add(t, p->annotations, "sidecar.istio.io/inject", spec_tree_string(t, "false"));
	if (p->network)
		spec_tree_add(t, p->annotations, "k8s.v1.cni.cncf.io/networks",
			      spec_tree_string(t, p->network));
	return t->failed ? spec_build_no_memory(p->build) : 0;
}

void spec_pods_clear(struct spec_pods *p)
{
	json_object_put(p->labels);
	json_object_put(p->annotations);
	json_object_put(p->job_id);
	json_object_put(p->rank0);
}

/* --- a role --------------------------------------------------------------------------------- */

static bool has_macros(const char *text)
{
	return strchr(text, '$') != NULL;
}

static void share_command(struct spec_pod_role *r)
{
	struct spec_tree *t = &r->pods->tree;

	for (size_t i = 0; i < r->role->n_args; i++) {
		if (has_macros(r->role->args[i]))
			return;
	}
	r->command = spec_tree_list(t, r->role->n_args + 1);
	spec_tree_append(t, r->command, spec_tree_string(t, r->role->entrypoint));
	for (size_t i = 0; i < r->role->n_args; i++)
		spec_tree_append(t, r->command, spec_tree_string(t, r->role->args[i]));
}

static void share_env(struct spec_pod_role *r)
{
	const struct spec_map *env = &r->role->env;

	r->env = calloc(env->n + 1, sizeof(struct json_object *));
	if (!r->env) {
		r->pods->tree.failed = true;
		return;
	}
	for (size_t i = 0; i < env->n; i++) {
		if (streq(env->v[i].key, POD_JOB_ID))
			r->env[i] = json_object_get(r->pods->job_id);
		else if (!has_macros(env->v[i].value))
			r->env[i] = pod_variable(&r->pods->tree, env->v[i].key, env->v[i].value);
	}
}

static int check_env(struct spec_pod_role *r)
{
	const struct spec_map *env = &r->role->env;
	int ret = 0;

	for (size_t i = 0; i < env->n; i++) {
		char *path cleanup_free = NULL;

		if (!streq(env->v[i].value, FIELD_PATH))
			continue;
		if (asprintf(&path, "roles[%zu].env.%s", r->index, env->v[i].key) < 0) {
			path = NULL;
			return spec_build_no_memory(r->pods->build);
		}
		ret = spec_build_refuse(r->pods->build, path,
					"names no field: write one behind it, like " FIELD_PATH
					"spec.nodeName");
	}
	return ret;
}

static void share_labels(struct spec_pod_role *r)
{
	struct spec_tree *t = &r->pods->tree;

	r->labels = spec_tree_map(t);
	spec_tree_add_all(t, r->labels, r->pods->labels);
	spec_tree_add(t, r->labels, "torchx.pytorch.org/role-index",
		      spec_tree_format(t, "%zu", r->index));
	spec_tree_add(t, r->labels, "torchx.pytorch.org/role-name", label(t, r->role->name));
}

static int find_overlay(struct spec_pod_role *r)
{
	struct spec_build *b = r->pods->build;
	char path[32];

	snprintf(path, sizeof(path), "roles[%zu]", r->index);
	if (!r->role->metadata)
		return 0;
	r->metadata = spec_tree_parse(r->role->metadata);
	if (!r->metadata)
		return spec_build_no_memory(b);
	return spec_overlay_find(r->metadata, path, &r->overlay, &r->overlay_path, b->errors);
}

int spec_pod_role_init(struct spec_pod_role *r, struct spec_pods *p, size_t index)
{
	int err, err2, err3;

	*r = (struct spec_pod_role){.pods = p,
				    .role = &p->build->app->roles[index],
				    .index = index};
	err = pod_parts_make(r);
	err2 = find_overlay(r);
	err3 = check_env(r);
	if (err || err2 || err3)
		return err ? err : err2 ? err2 : err3;
	share_labels(r);
	share_command(r);
	share_env(r);
	return p->tree.failed ? spec_build_no_memory(p->build) : 0;
}

void spec_pod_role_clear(struct spec_pod_role *r)
{
	for (size_t i = 0; r->env && i < r->role->env.n; i++)
		json_object_put(r->env[i]);
	free(r->env);
	json_object_put(r->labels);
	json_object_put(r->spec);
	json_object_put(r->container);
	json_object_put(r->image);
	json_object_put(r->command);
	json_object_put(r->more_env);
	json_object_put(r->metadata);
	free(r->overlay_path);
}

/* --- size ----------------------------------------------------------------------------------- */

uint64_t spec_pods_floor(const struct spec_app *app)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < app->n_roles; i++) {
		const struct spec_role *r = &app->roles[i];
		uint64_t bytes = 500; /* what each pod has, without texts */

		bytes += strlen(r->image) + strlen(r->entrypoint);
		bytes += r->metadata ? strlen(r->metadata) : 0;
		for (size_t j = 0; j < r->n_args; j++)
			bytes += strlen(r->args[j]);
		for (size_t j = 0; j < r->env.n; j++)
			bytes += strlen(r->env.v[j].key) + strlen(r->env.v[j].value);
		for (size_t j = 0; j < r->n_mounts; j++)
			bytes += strlen(r->mounts[j].src) + strlen(r->mounts[j].dst);
		bytes += 30 * r->port_map.n;
		sum += bytes * (uint64_t)r->num_replicas;
	}
	return sum;
}
