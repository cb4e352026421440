/* SPDX-License-Identifier: MIT */
/*
 * The values of an AppDef: text, numbers, maps. Text is taken as it is written; a number must
 * be written so that every reader of YAML takes it for the same one.
 */
#include "spec/app_value.h"

#include <errno.h>
#include <json-c/json.h>

#include "spec/limits.h"

void app_no_memory(struct app_reader *r)
{
	spec_errors_add(r->e, -ENOMEM, 0, 0, "", "out of memory");
}

/* Can KEY stand in a path as it is? */
static bool is_simple(const char *key)
{
	size_t n = strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-");

	return n > 0 && key[n] == '\0';
}

static void put_path(FILE *out, const struct app_path *path)
{
	if (!path)
		return;
	put_path(out, path->up);
	if (!path->key)
		fprintf(out, "[%zu]", path->index);
	else if (is_simple(path->key))
		fprintf(out, "%s%s", path->up ? "." : "", path->key);
	else
		fprintf(out, "[\"%s\"]", path->key);
}

char *app_path_text(struct app_reader *r, const struct app_path *path)
{
	char *ret = NULL;
	size_t len;
	FILE *out = open_memstream(&ret, &len);
	bool bad;

	if (out) {
		put_path(out, path);
		bad = ferror(out);
		if (fclose(out) == 0 && !bad)
			return ret;
		free(ret);
	}
	app_no_memory(r);
	return NULL;
}

/*
 * A file with very many errors must not cost as many texts: is NODE behind all errors that are
 * reported, and there is room for no more? Then it is counted.
 */
static bool is_dropped(struct app_reader *r, const struct spec_yaml *node)
{
	const struct spec_error *last = r->e->n ? &r->e->v[r->e->n - 1] : NULL;

	if (r->e->n < SPEC_MAX_ERRORS || node->line < last->line ||
	    (node->line == last->line && node->column < last->column))
		return false;
	r->e->dropped++;
	return true;
}

void app_error(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	       const char *fmt, ...)
{
	cleanup_free char *where = NULL;
	cleanup_free char *text = NULL;
	va_list ap;

	if (is_dropped(r, node))
		return;
	where = app_path_text(r, path);
	va_start(ap, fmt);
	text = base_vformat(fmt, ap);
	va_end(ap);
	if (!text) {
		app_no_memory(r);
	} else if (where) {
		spec_errors_add(r->e, -EINVAL, node->line, node->column, where, "%s", text);
	}
}

static const char *type_name(enum spec_yaml_type type)
{
	return type == SPEC_YAML_MAP ? "a map" : type == SPEC_YAML_LIST ? "a list" : "text";
}

bool app_is(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	    enum spec_yaml_type type, const char *hint)
{
	if (spec_yaml_is_null(node))
		app_error(r, path, node,
			  node->len ? "must not be null; leave out what has no value, or put "
				      "\"%s\" in quotes if that is the text"
				    : "has no value%s; give one, or leave it out",
			  node->text);
	else if (node->type != type)
		app_error(r, path, node, "must be %s, not %s%s%s", type_name(type),
			  type_name(node->type), *hint ? "; " : "", hint);
	else if (type == SPEC_YAML_SCALAR && strlen(node->text) != node->len)
		app_error(r, path, node, "must not hold a NUL character");
	else
		return true;
	return false;
}

/* --- maps --- */

#define MAX_FIELDS 20

static void unknown_field(struct app_reader *r, const struct app_path *path,
			  const struct spec_yaml *key, const struct app_field *fields)
{
	const char *words[MAX_FIELDS + 1], *near;
	char all[500];
	size_t n = 0, len = 0;

	if (is_dropped(r, key))
		return;
	for (; fields[n].name && n < MAX_FIELDS; n++) {
		words[n] = fields[n].name;
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", n ? ", " : "",
					words[n]);
		len = min_of(len, sizeof(all) - 1);
	}
	words[n] = NULL;
	near = spec_suggest(key->text, words);
	if (near)
		app_error(r, path, key, "unknown field; did you mean %s?", near);
	else
		app_error(r, path, key, "unknown field; the fields here are %s", all);
}

static const struct app_field *find_field(const struct app_field *fields, const char *name)
{
	for (; fields->name; fields++) {
		if (streq(fields->name, name))
			return fields;
	}
	return NULL;
}

void app_read_map(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		  const struct app_field *fields, void *into)
{
	bool seen[MAX_FIELDS] = {0};

	for (size_t i = 0; i < node->n; i += 2) {
		const struct spec_yaml *key = node->v[i], *value = node->v[i + 1];
		const struct app_field *field = find_field(fields, key->text);
		struct app_path at = {.up = path, .key = key->text};

		if (!field) {
			unknown_field(r, &at, key, fields);
			continue;
		}
		/* a key that stands twice is an error already */
		if (seen[field - fields])
			continue;
		seen[field - fields] = true;
		if (!spec_yaml_is_null(value) || app_is(r, &at, value, value->type, ""))
			field->load(r, &at, value, (char *)into + field->offset);
	}
	for (size_t i = 0; fields[i].name; i++) {
		if (fields[i].required && !seen[i])
			app_error(r, path, node, "%s is missing", fields[i].name);
	}
}

bool app_grow(struct app_reader *r, void *v, size_t n, size_t size)
{
	void *old, *new;

	/* doubles at powers of two */
	if (n & (n - 1))
		return true;
	memcpy(&old, v, sizeof(old));
	new = reallocarray(old, n ? 2 * n : 1, size);
	if (!new) {
		app_no_memory(r);
		return false;
	}
	memcpy(v, &new, sizeof(new));
	return true;
}

/* --- text --- */

static char *copy(struct app_reader *r, const char *text)
{
	char *ret = strdup(text);

	if (!ret)
		app_no_memory(r);
	return ret;
}

void app_read_text(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member)
{
	if (app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		*(char **)member = copy(r, node->text);
}

void app_read_word(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member)
{
	if (!app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		return;
	if (!*node->text)
		app_error(r, path, node, "must not be empty");
	else
		*(char **)member = copy(r, node->text);
}

static bool has_control(const char *text)
{
	for (; *text; text++) {
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return true;
	}
	return false;
}

void app_read_name(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member)
{
	if (app_is(r, path, node, SPEC_YAML_SCALAR, "") && has_control(node->text))
		app_error(r, path, node, "must not hold control characters or line breaks");
	else
		app_read_word(r, path, node, member);
}

void app_read_text_map(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, void *member)
{
	struct spec_map *map = member;

	if (!app_is(r, path, node, SPEC_YAML_MAP, "write NAME: VALUE"))
		return;
	for (size_t i = 0; i < node->n; i += 2) {
		struct app_path at = {.up = path, .key = node->v[i]->text};
		struct spec_pair pair = {0};

		if (!app_is(r, &at, node->v[i + 1], SPEC_YAML_SCALAR, "") ||
		    !app_grow(r, &map->v, map->n, sizeof(*map->v)))
			continue;
		pair.key = copy(r, node->v[i]->text);
		pair.value = copy(r, node->v[i + 1]->text);
		map->v[map->n++] = pair;
	}
}

/* --- anything --- */

/* No NUL anywhere in NODE. */
static bool check_any(struct app_reader *r, const struct app_path *path,
		      const struct spec_yaml *node)
{
	bool map = node->type == SPEC_YAML_MAP, ok = true;

	if (node->type == SPEC_YAML_SCALAR && strlen(node->text) != node->len) {
		app_error(r, path, node, "must not hold a NUL character");
		return false;
	}
	for (size_t i = 0; i < node->n; i += map ? 2 : 1) {
		struct app_path at = {.up = path, .key = map ? node->v[i]->text : NULL, .index = i};

		ok &= check_any(r, &at, node->v[map ? i + 1 : i]);
	}
	return ok;
}

char *app_any(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node)
{
	struct json_object *value = NULL;
	char *ret = NULL;

	if (!check_any(r, path, node))
		return NULL;
	if (node->type == SPEC_YAML_SCALAR)
		return copy(r, node->text);
	if (spec_yaml_to_json(node, &value) == 0)
		ret = strdup(json_object_to_json_string_ext(
			value, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE));
	if (!ret)
		app_no_memory(r);
	json_object_put(value);
	return ret;
}

void app_read_json(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member)
{
	if (app_is(r, path, node, SPEC_YAML_MAP, "write NAME: VALUE"))
		*(char **)member = app_any(r, path, node);
}
