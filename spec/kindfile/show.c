/* SPDX-License-Identifier: MIT */
/* What a mount would show of one object and its pods, without a cluster: for somebody who writes a kind file. */
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/tree.h"
#include "spec/job/status.h"
#include "spec/kindfile/kindfile.h"
#include "spec/view/view.h"

#define MAX_PODS SPEC_MAX_REPLICAS

/* The pods of a snapshot. */
struct pods {
	struct spec_pod_view **v;
	size_t n;
};

static void pods_clear(struct pods *pods)
{
	for (size_t i = 0; i < pods->n; i++)
		spec_pod_view_free(pods->v[i]);
	free(pods->v);
}

/* Read the items of LIST that are pods of the job whose uid is OWNER. */
static void read_pods(const struct spec_kind *kind, struct json_object *list, const char *owner,
		      struct pods *ret)
{
	struct json_object *items = spec_tree_find(list, "items");
	size_t n =
		json_object_is_type(items, json_type_array) ? json_object_array_length(items) : 0;

	for (size_t i = 0; i < n && ret->n < MAX_PODS; i++) {
		const char *json = json_object_to_json_string(json_object_array_get_idx(items, i));
		const struct spec_reader *const readers[] = {kind->reader, kind->reader};
		struct spec_pod_view *v;

		/* Two readers: a single one would take any pod. */
		if (spec_pod_view_parse(readers, array_size(readers), json, strlen(json), &v) < 0)
			continue;
		if (!streq(v->meta.owner_uid, owner)) {
			spec_pod_view_free(v);
			continue;
		}
		ret->v = mem_grow(ret->v, ret->n + 1, sizeof(struct spec_pod_view *));
		ret->v[ret->n++] = v;
	}
}

define_cleanup(job_freep, struct spec_job_view *, spec_job_view_free)

int spec_kind_show(const struct spec_kind *kind, const char *object, const char *pods, int64_t now,
		   char **ret)
{
	struct json_object *list cleanup_json = spec_tree_parse(pods);
	struct pods own cleanup(pods_clear) = {0};
	const struct spec_job *snapshot cleanup_job = NULL;
	cleanup(job_freep) struct spec_job_view *job = NULL;
	struct spec_view_context ctx = {
		.reader = kind->reader,
		.control = kind->control,
		.backend = kind->name,
		.namespace = "",
		.now = now,
		.since = now,
		.events_known = true,
	};
	size_t len;

	if (spec_job_view_parse(kind->reader, object, strlen(object), NULL, NULL, &job) < 0)
		return -EINVAL;
	read_pods(kind, list, job->meta.uid, &own);
	snapshot = spec_view_job(job, (const struct spec_pod_view *const *)own.v, own.n, &ctx);
	spec_status_yaml(snapshot, ret, &len);
	return 0;
}
