/* SPDX-License-Identifier: MIT */
/*
 * What a mount would show of one object and its pods, without a cluster, for authors of kind files.
 */
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/tree.h"
#include "spec/job/status.h"
#include "spec/kindfile/kindfile.h"
#include "spec/view/view.h"

#define MAX_PODS  SPEC_MAX_REPLICAS
#define MAX_LINKS 4

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

/*
 * Return the uid of the job that the object UID is, or that it belongs to by the controllers of
 * ITEMS.
 */
static const char *root_of(struct json_object *items, const char *uid)
{
	for (size_t i = 0, links = 0; i < json_object_array_length(items) && links < MAX_LINKS;
	     i++) {
		struct json_object *item = json_object_array_get_idx(items, i);
		struct json_object *own = spec_tree_find(item, "metadata.uid"), *owners;

		if (!own || !streq(json_object_get_string(own), uid))
			continue;
		owners = spec_tree_find(item, "metadata.ownerReferences");
		for (size_t k = 0; json_object_is_type(owners, json_type_array) &&
				   k < json_object_array_length(owners);
		     k++) {
			struct json_object *owner = json_object_array_get_idx(owners, k);

			if (!json_object_get_boolean(spec_tree_find(owner, "controller")))
				continue;
			own = spec_tree_find(owner, "uid");
			uid = own ? json_object_get_string(own) : "";
			links++;
			i = SIZE_MAX; /* search from the first item again */
			break;
		}
	}
	return uid;
}

/* The job to show, and the list that has its pods and the parts between. */
struct kindfile_shown {
	const struct spec_kind *kind;
	struct json_object *items;
	const char *uid;
};

/* Return the reader of the job that the object UID belongs to; NULL if that is another job. */
static const struct spec_reader *reader_of(void *data, const char *uid)
{
	const struct kindfile_shown *shown = data;

	return streq(root_of(shown->items, uid), shown->uid) ? shown->kind->reader : NULL;
}

/*
 * Read those items of LIST that are pods of the job whose uid is OWNER. Other items may be its
 * parts.
 */
static void read_pods(const struct spec_kind *kind, struct json_object *list, const char *owner,
		      struct pods *ret)
{
	struct json_object *items = spec_tree_find(list, "items");
	size_t n =
		json_object_is_type(items, json_type_array) ? json_object_array_length(items) : 0;
	struct kindfile_shown shown = {kind, items, owner};
	const struct spec_pod_readers readers = {&kind->reader, 1, reader_of, &shown};

	for (size_t i = 0; i < n && ret->n < MAX_PODS; i++) {
		struct json_object *item = json_object_array_get_idx(items, i);
		struct json_object *is = spec_tree_find(item, "kind");
		const char *json = json_object_to_json_string(item);
		struct spec_pod_view *v;

		/* In a list of only pods, the items may lack the kind. */
		if (is && !streq(json_object_get_string(is), "Pod"))
			continue;
		if (spec_pod_view_parse(&readers, json, strlen(json), &v) < 0)
			continue;
		if (!streq(root_of(items, v->meta.owner_uid), owner)) {
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
