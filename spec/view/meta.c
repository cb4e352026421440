/* SPDX-License-Identifier: MIT */
/*
 * Reads the metadata of objects. The files of this folder make snapshots of jobs from the objects
 * that the API server sends:
 *
 *   meta.c         the metadata of any object
 *   job.c          a job's object
 *   roles.c        the roles of a job, and the order of its replicas
 *   pod.c          a pod, and its state without regard to its job
 *   watched.c      pod groups, events and queues
 *   workload.c, local_queue.c  Kueue's objects
 *   place.c        assigns pods to replicas
 *   state.c        the job's state
 *   replica.c      one replica, from its pods
 *   cause.c, kueue_cause.c     what blocks a waiting job
 *   snapshot.c     the snapshot: only this file writes the fields of struct spec_job
 *
 * All functions are pure: the time and the last snapshot are arguments. Only the I/O thread uses
 * views of jobs, pods and groups. Any thread may hold views of events and queues, which are
 * reference counted.
 */
#include "spec/view/steps.h"

#include <errno.h>

#include "spec/base/name.h"
#include "spec/base/time.h"

#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

const struct spec_value *spec_view_labels(const struct spec_value *object)
{
	return spec_read_map(spec_read_map(object, "metadata"), "labels");
}

const struct spec_value *spec_view_condition(const struct spec_value *status, const char *type)
{
	return spec_read_item(spec_read_list(status, "conditions"), "type", type);
}

bool spec_view_is_true(const struct spec_value *condition)
{
	return streq(spec_read_text(condition, "status"), "True");
}

int64_t spec_view_changed(const struct spec_value *status)
{
	const struct spec_value *list = spec_read_list(status, "conditions");
	int64_t ret = 0;

	for (size_t i = 0; i < spec_read_count(list); i++)
		ret = max_of(ret, spec_read_time(spec_read_at(list, i), "lastTransitionTime"));
	return ret;
}

void spec_meta_clear(struct spec_meta *m)
{
	spec_unset(&m->name, &m->uid, &m->owner_uid, &m->owner);
}

/* True if TEXT is valid as a name in API paths and file names. */
static bool is_name(const char *text)
{
	return strlen(text) < 254 && spec_name_is_file(text) &&
	       text[strspn(text, NAME_CHARS "._")] == '\0';
}

bool spec_meta_is_uid(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= 64 && strspn(text, NAME_CHARS) == n;
}

const struct spec_value *spec_view_controller(const struct spec_value *object)
{
	const struct spec_value *owners =
		spec_read_list(spec_read_map(object, "metadata"), "ownerReferences");

	for (size_t i = 0; i < spec_read_count(owners); i++) {
		const struct spec_value *owner = spec_read_at(owners, i);

		if (spec_read_bool(owner, "controller") &&
		    spec_meta_is_uid(spec_read_text(owner, "uid")))
			return owner;
	}
	return NULL;
}

bool spec_view_is_a(const struct spec_value *controller, const char *api_version, const char *kind)
{
	return streq(spec_read_text(controller, "kind"), kind) &&
	       strncmp(spec_read_text(controller, "apiVersion"), api_version,
		       strcspn(api_version, "/") + 1) == 0;
}

int spec_meta_read(const struct spec_value *object, struct spec_meta *m)
{
	const struct spec_value *metadata = spec_read_map(object, "metadata");
	const char *name = spec_read_text(metadata, "name");
	const char *uid = spec_read_text(metadata, "uid");
	const struct spec_value *owner = spec_view_controller(object);
	cleanup_free char *text = NULL;

	if (!is_name(name) || !spec_meta_is_uid(uid))
		return -EINVAL;
	m->created = spec_read_time(metadata, "creationTimestamp");
	m->deleted = spec_read_time(metadata, "deletionTimestamp");
	/* deletionTimestamp is the time of the deletion request plus the grace period. */
	if (m->deleted)
		m->deleted -= NS_PER_S *
			      (int64_t)spec_read_int(metadata, "deletionGracePeriodSeconds", 0);
	spec_set(&m->name, name);
	spec_set(&m->uid, uid);
	if (owner)
		text = text_print("%s %s", spec_read_text(owner, "kind"),
				  spec_read_text(owner, "name"));
	spec_set(&m->owner_uid, spec_read_text(owner, "uid"));
	spec_read_copy(&m->owner, text ? text : "", READ_MAX_WORD);
	return 0;
}

int spec_meta_parse(const char *json, size_t len, struct spec_meta **ret)
{
	struct spec_value *o cleanup_free = NULL;
	struct spec_meta m = {0};

	if (spec_value_parse_map(json, len, &o) < 0 || spec_meta_read(o, &m) < 0)
		return -EINVAL;
	*ret = new0(struct spec_meta);
	**ret = m;
	return 0;
}

void spec_meta_free(struct spec_meta *m)
{
	if (m)
		spec_meta_clear(m);
	free(m);
}

bool spec_group_is_served(const char *groups, size_t len, const char *group)
{
	struct spec_value *o cleanup_free = NULL;

	return spec_value_parse_map(groups, len, &o) == 0 &&
	       spec_read_item(spec_read_list(o, "groups"), "name", group);
}

const char *spec_group_version(const char *groups, size_t len, const char *group)
{
	/* Supported versions, the newest of each group first. */
	static const char *const versions[] = {
		SPEC_KUEUE_GROUP "/v1beta2",	  SPEC_KUEUE_GROUP "/v1beta1",
		SPEC_KUEUE_VISIBILITY "/v1beta2", SPEC_KUEUE_VISIBILITY "/v1beta1",
		SPEC_METRICS_GROUP "/v1",	  SPEC_METRICS_GROUP "/v1beta1",
	};
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *list;

	if (spec_value_parse_map(groups, len, &o) < 0)
		return NULL;
	list = spec_read_list(spec_read_item(spec_read_list(o, "groups"), "name", group),
			      "versions");
	for (size_t i = 0; i < array_size(versions); i++)
		if (spec_read_item(list, "groupVersion", versions[i]))
			return versions[i];
	return NULL;
}
