/* SPDX-License-Identifier: MIT */
/*
 * Checks ready manifests, and gives them other names. A manifest is sent as it is, without what others have added
 * (added.c), so that a job's manifest.yaml can be submitted again.
 *
 * A name with a random suffix stands for its job wherever it is written: in the names of what an AppWrapper wraps, in
 * hosts, labels and arguments. All of these get the new name. Any other name may be a common word, so that only the
 * object itself is renamed.
 */
#include "spec/kinds/ready_manifest.h"

#include <ctype.h>
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/tree.h"
#include "spec/kinds/added.h"
#include "spec/kinds/kinds.h"
#include "spec/view/reader.h"

bool spec_ready_is(const struct spec_yaml *root)
{
	return root->type == SPEC_YAML_MAP &&
	       (spec_yaml_get(root, "apiVersion") || spec_yaml_get(root, "kind"));
}

static const struct spec_kind *find_kind(const char *version, const char *name)
{
	const struct spec_kind *kind;

	for (size_t i = 0; (kind = spec_kind_at(i)); i++) {
		if (streq(version, kind->api_version) && streq(name, kind->kind))
			return kind;
	}
	return NULL;
}

const struct spec_kind *spec_ready_kind(const struct spec_yaml *root)
{
	const struct spec_yaml *version = spec_yaml_get(root, "apiVersion");
	const struct spec_yaml *name = spec_yaml_get(root, "kind");

	if (!version || !name || version->type != SPEC_YAML_SCALAR ||
	    name->type != SPEC_YAML_SCALAR)
		return NULL;
	return find_kind(version->text, name->text);
}

/* The text of KEY; NULL: it is absent, or is no text, which is an error. */
static const char *get_text(const struct spec_yaml *map, const char *key, const char *path,
			    struct spec_errors *e)
{
	const struct spec_yaml *node = spec_yaml_get(map, key);

	if (!node)
		return NULL;
	if (node->type == SPEC_YAML_SCALAR && !spec_yaml_is_null(node) &&
	    strlen(node->text) == node->len)
		return node->text;
	spec_errors_add(e, -EINVAL, node->line, node->column, path, "must be text");
	return NULL;
}

/* Like get_text, but if it is absent that is an error, too. */
static const char *need_text(const struct spec_yaml *map, const char *key, const char *path,
			     struct spec_errors *e)
{
	const char *ret = get_text(map, key, path, e);

	if (!ret && !spec_yaml_get(map, key))
		spec_errors_add(e, -EINVAL, map->line, map->column, path,
				"is missing from the manifest");
	return ret;
}

static void check_kind(const struct spec_yaml *root, const struct spec_kind *kind,
		       struct spec_errors *e)
{
	const char *version = need_text(root, "apiVersion", "apiVersion", e);
	const char *name = need_text(root, "kind", "kind", e);
	const struct spec_yaml *at = spec_yaml_get(root, "kind");
	const struct spec_kind *other;

	if (!version || !name || (streq(version, kind->api_version) && streq(name, kind->kind)))
		return;
	other = find_kind(version, name);
	if (other)
		spec_errors_add(e, -EINVAL, at->line, at->column, "kind",
				"is %s's %s; jobs here are of %s (%s, %s)", other->name, name,
				kind->name, kind->api_version, kind->kind);
	else
		spec_errors_add(e, -EINVAL, at->line, at->column, "kind",
				"is %s of %s; only a %s of %s can be submitted here", name, version,
				kind->kind, kind->api_version);
}

static void check_metadata(const struct spec_yaml *root, const char *namespace, char **id,
			   struct spec_errors *e)
{
	const struct spec_yaml *metadata = spec_yaml_get(root, "metadata"), *at;
	const char *name, *space;

	if (!metadata || metadata->type != SPEC_YAML_MAP) {
		at = metadata ? metadata : root;
		spec_errors_add(e, -EINVAL, at->line, at->column, "metadata",
				metadata ? "must be a map" : "is missing from the manifest");
		return;
	}
	name = need_text(metadata, "name", "metadata.name", e);
	at = spec_yaml_get(metadata, "name");
	if (name && !spec_name_is_label(name))
		spec_errors_add(
			e, -EINVAL, at->line, at->column, "metadata.name",
			"must be 1 to 63 lower-case letters, digits and dashes, with no dash "
			"at its ends");
	space = get_text(metadata, "namespace", "metadata.namespace", e);
	at = spec_yaml_get(metadata, "namespace");
	if (space && !streq(space, namespace))
		spec_errors_add(e, -EINVAL, at->line, at->column, "metadata.namespace",
				"is \"%s\", but this is the namespace \"%s\": one mount submits to "
				"one namespace",
				space, namespace);
	at = spec_yaml_get(metadata, "annotations");
	if (at && at->type != SPEC_YAML_MAP)
		spec_errors_add(e, -EINVAL, at->line, at->column, "metadata.annotations",
				"must be a map");
	if (name && !e->err)
		*id = text_copy(name);
}

/* --- another name --- */

/* Where the random suffix of NAME begins; NULL: it has none. */
static const char *suffix_of(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && spec_name_is_suffix(dash + 1) ? dash : NULL;
}

/*
 * NAME with the suffix of V, in place of its own if it has one; malloc'ed. It does not get longer, since other names
 * are made of it.
 */
static char *renamed(const char *name, uint64_t v)
{
	const char *suffix = suffix_of(name);
	size_t n = suffix ? (size_t)(suffix - name) : strlen(name);
	cleanup_free char *base =
		mem_copy(name, min_of(n, (size_t)SPEC_MAX_NAME - SPEC_SUFFIX_MAX));
	char *ret = spec_name_job(base, v);

	if (suffix && strlen(ret) > strlen(name))
		ret[strlen(name)] = '\0';
	return ret;
}

struct names {
	const char *from, *to;
};

static bool is_word(char c)
{
	return islower((unsigned char)c) || isdigit((unsigned char)c);
}

/* The next place in TEXT, which began at BEGIN, where FROM is not a part of a longer word; NULL: there is none. */
static const char *find(const char *text, const char *begin, const char *from)
{
	const char *at = strstr(text, from);

	while (at && ((at > begin && is_word(at[-1])) || is_word(at[strlen(from)])))
		at = strstr(at + 1, from);
	return at;
}

static void replace_text(struct json_object *value, const struct names *names)
{
	const char *text = json_object_get_string(value), *p = text, *at;
	cleanup_free char *made = NULL;
	size_t len;
	FILE *f;

	if (!find(text, text, names->from))
		return;
	f = text_stream(&made, &len);
	for (; (at = find(p, text, names->from)); p = at + strlen(names->from))
		fprintf(f, "%.*s%s", (int)(at - p), p, names->to);
	fputs(p, f);
	text_stream_close(f);
	if (!json_object_set_string_len(value, made, (int)len))
		mem_out();
}

/* Replace the name in all texts below VALUE, which is nested no deeper than a document may be. */
static void replace_all(struct json_object *value, const struct names *names)
{
	if (json_object_is_type(value, json_type_string))
		replace_text(value, names);
	if (json_object_is_type(value, json_type_object)) {
		json_object_object_foreach(value, key, member) {
			(void)key;
			replace_all(member, names);
		}
	}
	for (size_t i = 0;
	     json_object_is_type(value, json_type_array) && i < json_object_array_length(value);
	     i++)
		replace_all(json_object_array_get_idx(value, i), names);
}

/* Check that nothing that OBJECT wraps, which is called ID now, has the name of something that the job OLD wraps. */
static int check_wrapped(struct json_object *object, const struct spec_kind *kind, const char *old,
			 const char *id, struct spec_errors *e)
{
	cleanup_free char *text = spec_tree_print(object);
	struct spec_value *read cleanup_free = NULL;
	const struct spec_value *list = NULL;
	const char *key = "";

	if (kind->reader->wrapped && spec_value_parse_map(text, strlen(text), &read) == 0)
		list = kind->reader->wrapped(read, &key);
	for (size_t i = 0; i < spec_read_count(list); i++) {
		const struct spec_value *wrapped = spec_read_map(spec_read_at(list, i), key);
		const char *name = spec_read_text(spec_read_map(wrapped, "metadata"), "name");

		if (*name && !find(name, name, id))
			return spec_errors_add(
				e, -EEXIST, 0, 0, "metadata.name",
				"a job named %s is there, and wraps %s %s: both need other names; "
				"nothing was launched",
				old, spec_read_text(wrapped, "kind"), name);
	}
	return 0;
}

/*
 * Give OBJECT, of KIND and called *ID, another name: the same with another random suffix, which is *ID then. 0, or the
 * errno of E: -EEXIST: it is launched beside an object that is still there, and what it wraps would have the names of
 * what that wraps.
 */
static int rename_object(struct json_object *object, const struct spec_kind *kind,
			 const struct spec_identity *who, char **id, struct spec_errors *e)
{
	cleanup_free char *old = take_ptr(*id);

	*id = renamed(old, who->random[0]);
	if (suffix_of(old))
		replace_all(object, &(struct names){old, *id});
	spec_tree_set(json_object_object_get(object, "metadata"), "name", spec_tree_string(*id));
	return who->old_exists ? check_wrapped(object, kind, old, *id, e) : 0;
}

int spec_ready_read(const struct spec_yaml *root, const struct spec_kind *kind,
		    const struct spec_identity *who, struct json_object **ret, char **id,
		    struct spec_errors *e)
{
	check_kind(root, kind, e);
	check_metadata(root, who->namespace, id, e);
	if (e->err)
		return e->err;
	spec_yaml_to_json(root, ret);
	spec_added_remove(*ret, kind);
	return who->rename ? rename_object(*ret, kind, who, id, e) : 0;
}
