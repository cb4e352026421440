/* SPDX-License-Identifier: MIT */
/* Prints the status of a job from its object and pods, to test a kind file without a cluster. */
#include <errno.h>

#include "spec/base/tree.h"
#include "spec/job/status.h"
#include "spec/kindfile/kindfile.h"
#include "spec/view/reader.h"

#define MAX_LINKS 4

struct shown_pods {
	struct spec_pod_view **v;
	size_t n;
};

static void shown_pods_clear(struct shown_pods *pods)
{
	for (size_t i = 0; i < pods->n; i++)
		spec_pod_view_free(pods->v[i]);
	free(pods->v);
}

/*
 * True if the object UID belongs to the job with the uid JOB. Follow at most LINKS references from
 * an object in ITEMS to its controller.
 */
static bool is_of_job(const struct spec_value *items, const char *uid, const char *job, int links)
{
	if (streq(uid, job))
		return true;
	for (size_t i = 0; i < spec_read_count(items) && links > 0; i++) {
		const struct spec_value *item = spec_read_at(items, i);

		if (streq(spec_read_text(spec_read_map(item, "metadata"), "uid"), uid))
			return is_of_job(items, spec_read_text(spec_view_controller(item), "uid"),
					 job, links - 1);
	}
	return false;
}

/* Read JOB's pods in ITEMS, which may have other objects, too. */
static void read_pods(struct shown_pods *pods, const struct spec_kind *kind,
		      const struct spec_value *items, const char *job)
{
	const struct spec_pod_readers readers = {.v = &kind->reader, .n = 1};

	pods->v = new0_n(struct spec_pod_view *, spec_read_count(items));
	for (size_t i = 0; i < spec_read_count(items); i++) {
		const struct spec_value *item = spec_read_at(items, i);
		const char *word = spec_read_text(item, "kind");
		struct json_object *tree cleanup_json = spec_tree_of(item);
		const char *json = json_object_to_json_string(tree);
		struct spec_pod_view *pod;

		/* "kind" may be missing in a list of pods. */
		if ((*word && !streq(word, "Pod")) ||
		    spec_pod_view_parse(&readers, json, strlen(json), &pod) < 0)
			continue;
		if (is_of_job(items, pod->meta.owner_uid, job, MAX_LINKS))
			pods->v[pods->n++] = pod;
		else
			spec_pod_view_free(pod);
	}
}

define_cleanup(job_freep, struct spec_job_view *, spec_job_view_free)

int spec_kind_show(const struct spec_kind *kind, const char *object, const char *pods, int64_t now,
		   char **ret)
{
	struct spec_value *list cleanup_free = NULL;
	struct shown_pods shown cleanup(shown_pods_clear) = {0};
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

	if (spec_job_view_parse(kind->reader, object, strlen(object), &job) < 0)
		return -EINVAL;
	if (spec_value_parse(pods, strlen(pods), &list) == 0)
		read_pods(&shown, kind, spec_read_list(list, "items"), job->meta.uid);
	snapshot = spec_view_job(job, (const struct spec_pod_view *const *)shown.v, shown.n, &ctx);
	spec_status_yaml(snapshot, ret, &len);
	return 0;
}
