/* SPDX-License-Identifier: MIT */
/*
 * Checks ready manifests, and renames their objects if necessary. kxfs removes only fields that
 * others have added (added.c), so users can submit a job's manifest.yaml again.
 *
 * If a name has a random suffix, kxfs replaces the name wherever it occurs: in names of wrapped
 * objects, hosts, labels and arguments. A name without such a suffix may be a common word, so only
 * the object itself is renamed. A fixed name replaces metadata.generateName, so that kxfs can retry
 * the request.
 */
#include "spec/kinds/ready_manifest.h"

#include <ctype.h>
#include <errno.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/name.h"
#include "spec/base/tree.h"
#include "spec/kinds/kinds.h"

const struct spec_kind *spec_ready_kind(const struct spec_kinds *known,
					const struct spec_yaml *root)
{
	const struct spec_yaml *version = spec_yaml_get(root, "apiVersion");
	const struct spec_yaml *name = spec_yaml_get(root, "kind");

	if (!version || !name || version->type != SPEC_YAML_SCALAR ||
	    name->type != SPEC_YAML_SCALAR)
		return NULL;
	for (size_t i = 0; i < known->n; i++) {
		const struct spec_kind *kind = known->v[i];

		if (streq(version->text, kind->api_version) && streq(name->text, kind->kind))
			return kind;
	}
	return NULL;
}

/* Return the text of ROOT's field KEY. If it is missing, add an error and return NULL. */
static const char *need_text(const struct spec_yaml *root, const char *key, struct spec_errors *e)
{
	const struct spec_yaml *node = spec_yaml_get(root, key);

	if (node && node->type == SPEC_YAML_SCALAR && !spec_yaml_is_null(node))
		return node->text;
	if (!node)
		node = root;
	spec_errors_add(e, -EINVAL, node->line, node->column, key,
			node == root ? "is missing from the manifest" : "must be text");
	return NULL;
}

void spec_ready_refuse(const struct spec_yaml *root, const struct spec_kind *const *kinds, size_t n,
		       struct spec_errors *e)
{
	const char *version = need_text(root, "apiVersion", e);
	const char *name = need_text(root, "kind", e);
	const struct spec_yaml *at = spec_yaml_get(root, "kind");
	cleanup_free char *all = text_copy("");

	if (!version || !name)
		return;
	for (size_t i = 0; i < n; i++)
		text_set(&all, "%s%s%s (%s)", all,
			 i == 0	     ? ""
			 : i + 1 < n ? ", "
				     : " or ",
			 kinds[i]->kind, kinds[i]->api_version);
	spec_errors_add(
		e, -EINVAL, at->line, at->column, "kind",
		"is %s of %s, which kxfs can't submit here: write an AppDef, or a manifest of %s%s",
		name, version, all,
		streq(name, "CronJob") ? "; copy spec.jobTemplate.spec of the CronJob to a Job"
				       : "");
}

/* --- metadata --- */

static void refuse(struct spec_errors *e, const char *path, const char *text)
{
	spec_errors_add(e, -EINVAL, 0, 0, path, "%s", text);
}

/* Return METADATA's text KEY, or "". If it is not text, add an error at PATH; return NULL. */
static const char *text_at(struct json_object *metadata, const char *key, const char *path,
			   struct spec_errors *e)
{
	struct json_object *value = json_object_object_get(metadata, key);

	if (json_object_is_type(value, json_type_string)) {
		const char *ret = json_object_get_string(value);

		if (strlen(ret) == (size_t)json_object_get_string_len(value))
			return ret;
	}
	if (!value)
		return "";
	refuse(e, path, "must be text");
	return NULL;
}

/*
 * True if the API server accepts TEXT as generateName. If TEXT ends with a dash, the server checks
 * it with "a" in place of its last two characters.
 */
static bool is_prefix(const char *text)
{
	cleanup_free char *masked = text_copy(text);
	size_t len = strlen(text);

	if (len > 1 && text[len - 1] == '-') {
		masked[len - 2] = 'a';
		masked[len - 1] = '\0';
	}
	return spec_name_is_object(masked);
}

/* --- renaming --- */

/* Return the dash before the random suffix of NAME, or NULL. */
static const char *suffix_of(const char *name)
{
	const char *dash = strrchr(name, '-');

	return dash && spec_name_is_suffix(dash + 1) ? dash : NULL;
}

/*
 * Return NAME with a new random suffix from V (malloc'ed). If NAME already has a random suffix,
 * replace it by one that is not longer, so that names which contain NAME still fit.
 */
static char *renamed(const char *name, uint64_t v)
{
	const char *old = suffix_of(name);
	size_t n = min_of(old ? (size_t)(old - name) : strlen(name),
			  (size_t)SPEC_MAX_NAME - SPEC_SUFFIX_MAX);
	char suffix[SPEC_SUFFIX_MAX], *ret;

	spec_name_suffix(v, suffix);
	while (n > 0 && (name[n - 1] == '-' || name[n - 1] == '.'))
		n--;
	ret = text_print("%.*s%s%s", (int)n, name, n && *suffix ? "-" : "", suffix);
	if (old && strlen(ret) > strlen(name))
		ret[strlen(name)] = '\0';
	return ret;
}

struct manifest_names {
	const char *from, *to;
};

static bool is_word(char c)
{
	return islower((unsigned char)c) || isdigit((unsigned char)c);
}

/*
 * Return the next occurrence of FROM in TEXT that is not a part of a longer word, or NULL. The
 * whole text starts at BEGIN.
 */
static const char *find(const char *text, const char *begin, const char *from)
{
	const char *at = strstr(text, from);

	while (at && ((at > begin && is_word(at[-1])) || is_word(at[strlen(from)])))
		at = strstr(at + 1, from);
	return at;
}

static void replace_text(struct json_object *value, const struct manifest_names *names)
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

/* Replace the name in all texts of VALUE. The parser limits the nesting. */
static void replace_all(struct json_object *value, const struct manifest_names *names)
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

struct renamed_object {
	const char *from, *to;
	struct spec_errors *errors;
};

/*
 * Check ITEM, a part of the renamed object. If ITEM's name does not contain the new name, the old
 * job has an object with the same name as ITEM. Then add an error. Skip pod templates, which have
 * no apiVersion.
 */
static void check_wrapped(struct json_object *item, const void *data)
{
	const struct renamed_object *o = data;
	struct json_object *kind = json_object_object_get(item, "kind");
	const char *name = json_object_get_string(spec_tree_find(item, "metadata.name"));

	if (kind && json_object_object_get(item, "apiVersion") && name && *name &&
	    !find(name, name, o->to) && !o->errors->err)
		spec_errors_add(o->errors, -EEXIST, 0, 0, "metadata.name",
				"the existing job %s already contains %s %s. Choose other names "
				"for the job and for this object. Nothing was launched",
				o->from, json_object_get_string(kind), name);
}

/*
 * Rename B's object: replace the random suffix or add one. If the old object still exists, it may
 * contain an object with the same name as one in the renamed object. Then add an error with
 * -EEXIST.
 */
static void rename_object(struct spec_build *b)
{
	cleanup_free char *old = take_ptr(b->id);

	b->id = renamed(old, b->identity->random[0]);
	if (suffix_of(old))
		replace_all(b->object, &(struct manifest_names){old, b->id});
	if (b->identity->old_exists)
		spec_each_template(b->kind, b->object, check_wrapped,
				   &(struct renamed_object){old, b->id, b->errors});
}

static void choose_name(struct spec_build *b, struct json_object *metadata)
{
	struct spec_errors *e = b->errors;
	const char *name = text_at(metadata, "name", "metadata.name", e);
	const char *prefix = text_at(metadata, "generateName", "metadata.generateName", e);
	bool named = name && *name;

	if (!name || !prefix)
		return;
	if (*prefix && !is_prefix(prefix)) {
		refuse(e, "metadata.generateName",
		       "must be the beginning of a name: lower-case letters, digits, dashes "
		       "and dots");
		return;
	}
	if (!named && !*prefix) {
		refuse(e, "metadata.name", "is missing from the manifest, and so is generateName");
		return;
	}
	b->id = named ? text_copy(name) : renamed(prefix, b->identity->random[0]);
	if (!spec_name_is_object(b->id) || strlen(b->id) > SPEC_MAX_NAME)
		refuse(e, named ? "metadata.name" : "metadata.generateName",
		       "must be 1 to 63 lower-case letters, digits, dashes and dots; the name, and "
		       "each part between dots, must begin and end with a letter or digit");
	b->named = named && !b->identity->rename;
	if (!e->err && named && b->identity->rename)
		rename_object(b);
	spec_tree_set(metadata, "name", spec_tree_string(b->id));
}

static void check_metadata(struct spec_build *b, const struct spec_yaml *root)
{
	struct json_object *metadata = json_object_object_get(b->object, "metadata"), *notes;
	const char *namespace = b->identity->namespace, *space;
	struct spec_errors *e = b->errors;

	if (!json_object_is_type(metadata, json_type_object)) {
		spec_errors_add(e, -EINVAL, metadata ? 0 : root->line, metadata ? 0 : root->column,
				"metadata",
				metadata ? "must be a map" : "is missing from the manifest");
		return;
	}
	space = text_at(metadata, "namespace", "metadata.namespace", e);
	if (space && *space && !streq(space, namespace))
		spec_errors_add(e, -EINVAL, 0, 0, "metadata.namespace",
				"is \"%s\", but this mount submits only to namespace \"%s\"", space,
				namespace);
	notes = json_object_object_get(metadata, "annotations");
	if (notes && !json_object_is_type(notes, json_type_object))
		refuse(e, "metadata.annotations", "must be a map");
	choose_name(b, metadata);
}

int spec_ready_read(const struct spec_yaml *root, struct spec_build *b)
{
	if (b->errors->err || spec_yaml_to_object(root, &b->object, b->errors) < 0)
		return b->errors->err;
	check_metadata(b, root);
	if (!b->errors->err)
		spec_added_remove(b->object, b->kind);
	return b->errors->err;
}
