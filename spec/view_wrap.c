/* SPDX-License-Identifier: MIT */
/*
 * Pods that an AppWrapper wraps, in its object and in the cluster. Those of TorchX, and ours, say by
 * labels which replica they are, and are found by these: the names of TorchX's pods lack the role.
 * Others are found by their names. What wraps pods in turn (a batch Job) is not looked into.
 */
#include <errno.h>

#include "spec/view_impl.h"

#define TORCHX "torchx.pytorch.org/"

/* What a pod is found by: "ROLE.REPLICA" of its LABELS, made in KEY, else its name. */
static const char *key_of(struct json_object *object, char *key, size_t size)
{
	struct json_object *labels = spec_view_labels(object);
	int role = spec_read_digits(spec_read_text(labels, TORCHX "role-index"));
	int replica = spec_read_digits(spec_read_text(labels, TORCHX "replica-id"));

	if (role < 0 || replica < 0 || !*spec_read_text(labels, TORCHX "role-name"))
		return spec_read_text(spec_read_map(object, "metadata"), "name");
	snprintf(key, size, "%d.%d", role, replica);
	return key;
}

static void read_task(struct json_object *pod, struct spec_task_source *ret)
{
	struct json_object *labels = spec_view_labels(pod);
	int id = spec_read_digits(spec_read_text(labels, TORCHX "replica-id"));

	ret->name = key_of(pod, ret->key, sizeof(ret->key));
	ret->replicas = ret->minimum = 1;
	ret->role = id < 0 ? "" : spec_read_text(labels, TORCHX "role-name");
	ret->replica = id < 0 ? 0 : (unsigned)id;
}

static bool is_pod(struct json_object *object)
{
	return streq(spec_read_text(object, "kind"), "Pod") &&
	       streq(spec_read_text(object, "apiVersion"), "v1");
}

/* Has it no pods of its own? */
static bool is_quiet(struct json_object *object)
{
	static const char *const kinds[] = {"Service",	      "PodGroup", "ConfigMap",
					    "Secret",	      "Ingress",  "NetworkPolicy",
					    "ServiceAccount", "Role",	  "PersistentVolumeClaim",
					    "RoleBinding",    "Route"};
	const char *kind = spec_read_text(object, "kind");

	for (size_t i = 0; i < array_size(kinds); i++)
		if (streq(kind, kinds[i]))
			return true;
	return false;
}

int spec_wrap_tasks(struct json_object *list, const char *key, struct spec_job_view *v,
		    struct spec_task_source **tasks, size_t *n)
{
	*n = 0;
	*tasks = calloc(spec_read_count(list) + 1, sizeof(**tasks));
	if (!*tasks)
		return -ENOMEM;
	for (size_t i = 0; i < spec_read_count(list); i++) {
		struct json_object *pod = spec_read_map(spec_read_at(list, i), key);

		if (!is_pod(pod)) {
			v->hidden |= !is_quiet(pod);
			continue;
		}
		if (*n == 0 &&
		    spec_read_copy(&v->app,
				   spec_read_text(spec_view_labels(pod), TORCHX "app-name"),
				   READ_MAX_WORD) < 0)
			return -ENOMEM;
		read_task(pod, &(*tasks)[(*n)++]);
	}
	return 0;
}

int spec_wrap_pod(struct json_object *object, struct spec_pod_view *v)
{
	char key[sizeof(((struct spec_task_source *)NULL)->key)];

	v->index = 0;
	v->retry = SPEC_RETRY_UNKNOWN;
	if (spec_read_copy(&v->task, key_of(object, key, sizeof(key)), READ_MAX_WORD) < 0 ||
	    spec_read_copy(&v->main, spec_pod_choose_main(object, v->meta.name), READ_MAX_WORD) < 0)
		return -ENOMEM;
	return 0;
}
