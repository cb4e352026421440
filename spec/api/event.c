/* SPDX-License-Identifier: MIT */
/*
 * Parses an event of a watch. Its object may have a megabyte, and the owner parses it, so the text
 * is only scanned here.
 */
#include "spec/api/event.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/read.h"
#include "spec/base/span.h"

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
		/* The object of an ERROR event, a Status. */
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
