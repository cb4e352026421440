/* SPDX-License-Identifier: MIT */
/*
 * Indexed Jobs. The object does not grow with the number of replicas: these differ only in their index, which the
 * cluster puts into a variable, and a macro that names the replica becomes that variable.
 */
#include "spec/pods/indexed.h"

#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/view/kueue.h"

#define RESERVED_MILLICPU 100
#define RESERVED_MEMORY	  1024 /* MB */
#define INDEX		  "JOB_COMPLETION_INDEX"
#define NOTES		  "batch.kubernetes.io/"

/* --- making --- */

void indexed_init(struct spec_pods *p, struct spec_build *b, const char *rank0_host)
{
	p->build = b;
	p->app_name = b->app->name;
	p->rank0_env = "TORCHX_RANK0_HOST";
	p->rank0_host = rank0_host;
	p->replica_id = "$(" INDEX ")";
	/* From where the Job controller writes it. */
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

/* --- reading --- */

const struct spec_value *indexed_condition(const struct spec_value *status, const char *type)
{
	const struct spec_value *c = spec_view_condition(status, type);

	return spec_view_is_true(c) ? c : NULL;
}

const char *indexed_phase(const struct spec_value *status, const char *const *types)
{
	if (!status || status->n == 0)
		return "";
	for (; *types; types++)
		if (indexed_condition(status, *types))
			return *types;
	return "Running";
}

void indexed_status(struct spec_job_view *v, const struct spec_value *object, const char *phase)
{
	cleanup_free char *text = NULL;

	spec_job_view_labelled(v, object);
	v->changed = max_of(v->changed, spec_view_changed(spec_read_map(object, "status")));
	spec_read_copy(&v->phase, phase, READ_MAX_WORD);
	if (streq(phase, "Suspended") && *v->queue) {
		spec_job_view_queued(v, v->queue);
	} else if (streq(phase, "Suspended") && v->owned) {
		text = text_print("The job waits for its owner, %s, which has not let it run yet",
				  v->meta.owner);
		spec_set(&v->reason, "SuspendedByOwner");
		spec_read_copy(&v->message, text, READ_MAX_MESSAGE);
	}
}

int indexed_number(const struct spec_value *labels, const char *key, int none)
{
	int n = spec_read_digits(spec_read_text(labels, key));

	return n < 0 ? none : n;
}

void indexed_pod(const struct spec_value *object, struct spec_pod_view *v)
{
	const struct spec_value *notes =
		spec_read_map(spec_read_map(object, "metadata"), "annotations");

	v->index = (unsigned)indexed_number(notes, NOTES "job-completion-index", -1);
	v->failures = (unsigned)indexed_number(notes, NOTES "job-index-failure-count", 0);
}
