/* SPDX-License-Identifier: MIT */
/*
 * Reads one object of a cluster, or one event of a watch. The object in an event may be a megabyte
 * long. So spec_event_parse does not parse the object. It copies the text, and the caller parses
 * it.
 */
#include "spec/api/object.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/span.h"
#include "spec/base/tree.h"
#include "spec/base/value.h"
#include "spec/yaml/yaml.h"

/* Return O's annotation KEY, borrowed; "" if O has none. */
static const char *annotation(const struct spec_value *o, const char *key)
{
	return spec_read_text(spec_read_map(spec_read_map(o, "metadata"), "annotations"), key);
}

bool spec_object_is_submission(const char *json, size_t len, const char *submission)
{
	struct spec_value *o cleanup_free = NULL;

	return spec_value_parse_map(json, len, &o) == 0 &&
	       streq(annotation(o, "kxfs/submission"), submission);
}

static bool is_text(const struct spec_value *o, const char *key, const char *wanted)
{
	return !wanted || streq(spec_read_text(o, key), wanted);
}

bool spec_object_is(const char *json, size_t len, const struct spec_object_wanted *w)
{
	struct spec_value *o cleanup_free = NULL;
	const struct spec_value *metadata;
	const char *submission;

	if (spec_value_parse_map(json, len, &o) < 0 || !*spec_read_text(o, "kind") ||
	    is_text(o, "kind", "Status"))
		return false;
	metadata = spec_read_map(o, "metadata");
	submission = annotation(o, "kxfs/submission");
	return is_text(o, "kind", w->kind) && is_text(metadata, "name", w->name) &&
	       is_text(metadata, "uid", w->uid) &&
	       (!w->submission || !*submission || streq(submission, w->submission));
}

bool spec_object_is_success(const char *json, size_t len)
{
	struct spec_value *o cleanup_free = NULL;

	return spec_value_parse_map(json, len, &o) == 0 && is_text(o, "kind", "Status") &&
	       is_text(o, "status", "Success");
}

bool spec_version_is_up_to(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	if (strspn(a, "0123456789") != n || strspn(b, "0123456789") != m)
		return false;
	return n != m ? n < m : strcmp(a, b) <= 0;
}

char *spec_object_name(const char *json, size_t len, const char *key)
{
	struct spec_span object = {json, json + len}, metadata, s;

	if (!spec_span_member(object, "metadata", &metadata) ||
	    !spec_span_member(metadata, key, &s) || *s.p != '"' || spec_span_len(s) > 256)
		return text_copy("");
	return mem_copy(s.p + 1, spec_span_len(s) - 2);
}

static const struct spec_value *find_container(const struct spec_value *pod, const char *name)
{
	static const char *const keys[] = {"containerStatuses", "initContainerStatuses",
					   "ephemeralContainerStatuses"};

	for (size_t i = 0; i < array_size(keys); i++) {
		const struct spec_value *all =
			spec_read_list(spec_read_map(pod, "status"), keys[i]);

		if (spec_read_item(all, "name", name))
			return spec_read_item(all, "name", name);
	}
	return NULL;
}

int spec_object_listed_run(const char *json, size_t len, const char *container,
			   struct spec_listed_run *ret)
{
	struct spec_value *list cleanup_free = NULL;
	const struct spec_value *pod, *status, *state;
	int err = spec_value_parse_map(json, len, &list);

	if (err)
		return err;
	if (!spec_read_list(list, "items"))
		return -EINVAL;
	pod = spec_read_at(spec_read_list(list, "items"), 0);
	status = find_container(pod, container);
	state = spec_read_map(status, "state");
	*ret = (struct spec_listed_run){
		.uid = text_copy(spec_read_text(spec_read_map(pod, "metadata"), "uid")),
		.restarts = spec_read_int(status, "restartCount", -1),
		.between = spec_read_map(state, "waiting") &&
			   spec_read_map(spec_read_map(status, "lastState"), "terminated"),
	};
	return 0;
}

int spec_object_yaml(const char *json, size_t len, char **ret, size_t *ret_len)
{
	struct spec_value *value cleanup_free = NULL;
	int err = spec_value_parse_map(json, len, &value);
	struct json_object *o cleanup_json = err < 0 ? NULL : spec_tree_of(value);
	struct json_object *metadata;

	if (err < 0)
		return err;
	/* A splitter removes managedFields, but not every reply goes through a splitter. */
	if (json_object_object_get_ex(o, "metadata", &metadata) &&
	    json_object_is_type(metadata, json_type_object))
		json_object_object_del(metadata, "managedFields");
	spec_yaml_emit(o, 0, ret, ret_len);
	return 0;
}

int spec_object_appdef(const char *json, size_t len, char **ret, size_t *ret_len)
{
	struct spec_value *o cleanup_free = NULL;
	int err = spec_value_parse_map(json, len, &o);
	const char *text;

	if (err)
		return err;
	text = annotation(o, "kxfs/appdef");
	if (!*text)
		return -ENOENT;
	*ret_len = strlen(text);
	*ret = text_copy(text);
	return 0;
}

/* --- events --- */

static const char *const type_names[] = {
	[SPEC_EVENT_ADDED] = "ADDED",	  [SPEC_EVENT_MODIFIED] = "MODIFIED",
	[SPEC_EVENT_DELETED] = "DELETED", [SPEC_EVENT_BOOKMARK] = "BOOKMARK",
	[SPEC_EVENT_ERROR] = "ERROR",
};

static int read_version(struct spec_span object, char **ret)
{
	struct spec_span metadata, version;
	size_t n;

	if (!spec_span_member(object, "metadata", &metadata) ||
	    !spec_span_member(metadata, "resourceVersion", &version) || *version.p != '"')
		return -EINVAL;
	n = (size_t)(version.end - version.p) - 2;
	if (n == 0 || memchr(version.p, '\\', n + 1))
		return -EINVAL;
	*ret = mem_copy(version.p + 1, n);
	return 0;
}

static int read_type(struct spec_span type, enum spec_event_type *ret)
{
	for (size_t i = 0; i < array_size(type_names); i++) {
		if (spec_span_is(type, type_names[i])) {
			*ret = (enum spec_event_type)i;
			return 0;
		}
	}
	return -EINVAL;
}

int spec_event_parse(const char *json, size_t len, struct spec_event *ret)
{
	struct spec_span whole = {json, json + len}, type, object;
	struct spec_event e = {0};
	int err = -EINVAL;

	*ret = e;
	if (!spec_span_member(whole, "type", &type) ||
	    !spec_span_member(whole, "object", &object) || *object.p != '{' ||
	    read_type(type, &e.type) < 0)
		return -EINVAL;
	e.len = spec_span_len(object);
	if (memchr(object.p, '\0', e.len))
		return -EINVAL;
	e.object = mem_copy(object.p, e.len);
	if (e.type == SPEC_EVENT_ERROR) {
		/* The object of an ERROR event is a Status. */
		cleanup_free struct spec_value *o = NULL;

		if (spec_value_parse_map(e.object, e.len, &o) == 0)
			e.code = spec_read_int(o, "code", 0);
		e.resource_version = text_copy("");
		err = 0;
	} else {
		err = read_version(object, &e.resource_version);
	}
	if (err)
		spec_event_clear(&e);
	*ret = e;
	return err;
}

void spec_event_clear(struct spec_event *e)
{
	free(e->resource_version);
	free(e->object);
	*e = (struct spec_event){0};
}
