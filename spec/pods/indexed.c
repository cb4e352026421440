/* SPDX-License-Identifier: MIT */
/*
 * Indexed Jobs. The object does not grow with the number of replicas: these differ only in their
 * index, which the cluster puts into a variable, and a macro for the replica becomes that variable.
 */
#include "spec/pods/indexed.h"

#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/view/kueue.h"

#define RESERVED_MILLICPU 100
#define RESERVED_MEMORY	  1024 /* MB */
#define INDEX		  "JOB_COMPLETION_INDEX"
#define NOTES		  "batch.kubernetes.io/"

void indexed_init(struct spec_pods *p, struct spec_build *b, const char *rank0_host)
{
	p->build = b;
	p->app_name = b->app->name;
	p->rank0_env = "TORCHX_RANK0_HOST";
	p->rank0_host = rank0_host;
	p->replica_id = "$(" INDEX ")";
	/* The source of the Job controller's index. */
	p->number = spec_tree_parse("{\"name\": \"" INDEX
				    "\", \"valueFrom\": {\"fieldRef\": {\"fieldPath\": "
				    "\"metadata.annotations['" NOTES "job-completion-index']\"}}}");
	p->reserved_cpu = RESERVED_MILLICPU;
	p->reserved_memory = RESERVED_MEMORY;
	p->efa = -1;
	spec_pods_init(p);
}

struct json_object *indexed_job(struct spec_pods *p, size_t index, int64_t parallelism,
				void (*retries)(struct json_object *spec,
						const struct spec_role *role))
{
	struct spec_pod_role r cleanup(spec_pod_role_clear);
	cleanup_free char *name = spec_name_norm(p->build->app->roles[index].name);
	const char *secret = spec_options_text(p->build->options, "image_secret");
	struct json_object *pod, *ret;

	if (spec_pod_role_init(&r, p, index) < 0)
		return NULL;
	if (secret) {
		ret = spec_tree_add(r.spec, "imagePullSecrets", spec_tree_list(1));
		spec_tree_text(spec_tree_append(ret, spec_tree_map()), "name", secret);
	}
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

struct json_object *indexed_object(struct spec_pods *p)
{
	const struct spec_build *b = p->build;
	struct json_object *ret = spec_tree_map(), *metadata = spec_tree_map();
	struct json_object *labels = spec_pods_object_labels(p);
	const char *priority = spec_options_text(b->options, "priority_class");

	spec_build_queue(b, labels);
	if (priority && *priority)
		spec_tree_text(labels, SPEC_KUEUE_PRIORITY, priority);
	spec_tree_text(ret, "apiVersion", b->kind->api_version);
	spec_tree_text(ret, "kind", b->kind->kind);
	spec_tree_text(metadata, "name", b->id);
	spec_tree_text(metadata, "namespace", b->identity->namespace);
	spec_tree_add(metadata, "labels", labels);
	spec_tree_add(ret, "metadata", metadata);
	return ret;
}
