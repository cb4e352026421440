/* SPDX-License-Identifier: MIT */
/*
 * What jobs and pods have in common: metadata, with the check of names that become file names.
 */
#include <errno.h>

#include "spec/limits.h"
#include "spec/name.h"
#include "spec/view_impl.h"

/* Deeper than a splitter lets through. */
#define MAX_DEPTH  (2 * SPEC_MAX_DEPTH + 2)
#define NAME_CHARS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-"

static void free_tokener(struct json_tokener **tok)
{
	if (*tok)
		json_tokener_free(*tok);
}

int spec_view_object(const char *json, size_t len, struct json_object **ret)
{
	struct json_tokener *tok cleanup(free_tokener) = json_tokener_new_ex(MAX_DEPTH);
	struct json_object *o;
	enum json_tokener_error err;

	if (!tok)
		return -ENOMEM;
	if (len > SPEC_MAX_WATCHED)
		return -EINVAL;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	o = json_tokener_parse_ex(tok, json, (int)len);
	err = json_tokener_get_error(tok);
	if (err == json_tokener_success && json_object_is_type(o, json_type_object)) {
		*ret = o;
		return 0;
	}
	json_object_put(o);
	return -EINVAL;
}

struct json_object *spec_view_labels(struct json_object *object)
{
	return spec_read_map(spec_read_map(object, "metadata"), "labels");
}

int spec_meta_init(struct spec_meta *m)
{
	return spec_set(&m->name, "") < 0 || spec_set(&m->uid, "") < 0 ||
			       spec_set(&m->resource_version, "") < 0 ||
			       spec_set(&m->owner_uid, "") < 0
		       ? -ENOMEM
		       : 0;
}

void spec_meta_clear(struct spec_meta *m)
{
	spec_unset(&m->name);
	spec_unset(&m->uid);
	spec_unset(&m->resource_version);
	spec_unset(&m->owner_uid);
}

/* Names and uids stand in paths, file names and keys of logs. */
static bool is_name(const char *text)
{
	return strlen(text) < 254 && spec_name_is_file(text) &&
	       text[strspn(text, NAME_CHARS "._")] == '\0';
}

static bool is_uid(const char *text)
{
	size_t n = strlen(text);

	return n > 0 && n <= 64 && strspn(text, NAME_CHARS) == n;
}

static const char *controller_uid(struct json_object *metadata)
{
	struct json_object *owners = spec_read_list(metadata, "ownerReferences");

	for (size_t i = 0; i < spec_read_count(owners); i++) {
		struct json_object *owner = spec_read_at(owners, i);
		const char *uid = spec_read_text(owner, "uid");

		if (spec_read_bool(owner, "controller") && is_uid(uid))
			return uid;
	}
	return "";
}

int spec_meta_read(struct json_object *object, struct spec_meta *m)
{
	struct json_object *metadata = spec_read_map(object, "metadata");
	const char *name = spec_read_text(metadata, "name");
	const char *uid = spec_read_text(metadata, "uid");

	if (!is_name(name) || !is_uid(uid))
		return -EINVAL;
	m->created = spec_read_time(metadata, "creationTimestamp");
	m->deleted = spec_read_time(metadata, "deletionTimestamp");
	/* That is when it must be gone; it was asked for so many seconds before. */
	if (m->deleted)
		m->deleted -= 1000000000 *
			      (int64_t)spec_read_int(metadata, "deletionGracePeriodSeconds", 0);
	if (spec_set(&m->name, name) < 0 || spec_set(&m->uid, uid) < 0 ||
	    spec_read_copy(&m->resource_version, spec_read_text(metadata, "resourceVersion"),
			   READ_MAX_WORD) < 0 ||
	    spec_set(&m->owner_uid, controller_uid(metadata)) < 0)
		return -ENOMEM;
	return 0;
}
