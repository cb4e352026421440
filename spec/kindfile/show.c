/* SPDX-License-Identifier: MIT */
/*
 * Makes the text that a mount would show of one object and its pods, without a cluster. For authors
 * of kind files.
 */
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/tree.h"
#include "spec/job/status.h"
#include "spec/kindfile/kindfile.h"
#include "spec/view/reader.h"

#define MAX_PODS  SPEC_MAX_REPLICAS
#define MAX_LINKS 4

/* The job to show, and the list with its pods and the objects between. */
struct kindfile_shown {
	const struct spec_reader *reader;
	const struct spec_value *items;
	const char *uid;
	struct spec_pod_view **pods;
	size_t n;
};

static void shown_clear(struct kindfile_shown *shown)
{
	for (size_t i = 0; i < shown->n; i++)
		spec_pod_view_free(shown->pods[i]);
	free(shown->pods);
}

/* True if the object UID is the job, or the controllers in the list lead from it to the job. */
static bool is_of_job(const struct kindfile_shown *shown, const char *uid)
{
	size_t n = spec_read_count(shown->items);

	for (size_t i = 0, links = 0; i < n && links < MAX_LINKS; i++) {
		const struct spec_value *item = spec_read_at(shown->items, i);

		if (!streq(spec_read_text(spec_read_map(item, "metadata"), "uid"), uid))
			continue;
		uid = spec_read_text(spec_view_controller(item), "uid");
		links++;
		i = SIZE_MAX; /* search from the first item again */
	}
	return streq(uid, shown->uid);
}

/* Return the reader of the shown job if the object UID belongs to it; else NULL. */
static const struct spec_reader *reader_of(void *data, const char *uid)
{
	const struct kindfile_shown *shown = data;

	return is_of_job(shown, uid) ? shown->reader : NULL;
}

/* Read the items that are pods of the job. Other items may be objects between pods and job. */
static void read_pods(struct kindfile_shown *shown)
{
	const struct spec_pod_readers readers = {&shown->reader, 1, reader_of, shown};

	for (size_t i = 0; i < spec_read_count(shown->items) && shown->n < MAX_PODS; i++) {
		const struct spec_value *item = spec_read_at(shown->items, i);
		const char *kind = spec_read_text(item, "kind");
		struct json_object *tree cleanup_json = spec_tree_of(item);
		const char *json = json_object_to_json_string(tree);
		struct spec_pod_view *v;

		/* Items of a list of pods may lack the member "kind". */
		if ((*kind && !streq(kind, "Pod")) ||
		    spec_pod_view_parse(&readers, json, strlen(json), &v) < 0)
			continue;
		shown->pods = mem_grow(shown->pods, shown->n + 1, sizeof(struct spec_pod_view *));
		shown->pods[shown->n] = v;
		if (is_of_job(shown, v->meta.owner_uid))
			shown->n++;
		else
			spec_pod_view_free(v);
	}
}

define_cleanup(job_freep, struct spec_job_view *, spec_job_view_free)

int spec_kind_show(const struct spec_kind *kind, const char *object, const char *pods, int64_t now,
		   char **ret)
{
	struct spec_value *list cleanup_free = NULL;
	struct kindfile_shown shown cleanup(shown_clear) = {.reader = kind->reader};
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
	if (spec_value_parse(pods, strlen(pods), &list) == 0)
		shown.items = spec_read_list(list, "items");
	shown.uid = job->meta.uid;
	read_pods(&shown);
	snapshot =
		spec_view_job(job, (const struct spec_pod_view *const *)shown.pods, shown.n, &ctx);
	spec_status_yaml(snapshot, ret, &len);
	return 0;
}
