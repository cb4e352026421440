/* SPDX-License-Identifier: MIT */
/*
 * Reads the values of an AppDef. Text is used as written. A number must have a form that every YAML
 * parser reads as the same number: "010" is refused, since some parsers read it as 8.
 */
#include "spec/app/app_value.h"

#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/tree.h"

/* No machine has more of any resource. A double can express 1000 times this number exactly. */
#define NUMBER_MAX 1e12

static void put_path(FILE *out, const struct app_path *path)
{
	if (!path)
		return;
	put_path(out, path->up);
	if (path->key)
		spec_errors_key(out, path->key, !path->up);
	else
		fprintf(out, "[%zu]", path->index);
}

char *app_path_text(const struct app_path *path)
{
	char *ret;
	size_t len;
	FILE *out = text_stream(&ret, &len);

	put_path(out, path);
	text_stream_close(out);
	return ret;
}

void app_error(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	       const char *fmt, ...)
{
	cleanup_free char *where = app_path_text(path), *text = text_of_args(fmt);

	spec_errors_add(r->e, -EINVAL, node->line, node->column, where, "%s", text);
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
			  node->len ? "must not be null; leave out a field that has no value, "
				      "or put \"%s\" in quotes if you mean this text"
				    : "has no value%s; give a value, or leave the field out",
			  node->text);
	else if (node->type != type)
		app_error(r, path, node, "must be %s, not %s%s%s", type_name(type),
			  type_name(node->type), *hint ? "; " : "", hint);
	else if (type == SPEC_YAML_SCALAR && strlen(node->text) != node->len)
		app_error(r, path, node, "must not contain a NUL character");
	else
		return true;
	return false;
}

#define MAX_FIELDS 24

/* Names of fields in other systems, for hints about unknown fields. */
static const struct {
	const char *theirs, *ours;
} synonyms[] = {
	{"command", "entrypoint"}, {"cmd", "entrypoint"},	 {"environment", "env"},
	{"ports", "port_map"},	   {"replicas", "num_replicas"}, {"retries", "max_retries"},
	{"volumes", "mounts"},	   {"memory", "memMB"},
};

static void unknown_field(struct app_reader *r, const struct app_path *path,
			  const struct spec_yaml *key, const struct app_field *fields)
{
	const char *words[MAX_FIELDS + 1];
	const char *word = key->text;
	cleanup_free char *hint = NULL;
	char all[500] = "; the fields here are ";
	size_t n = 0, len = strlen(all);

	for (; fields[n].name && n < MAX_FIELDS; n++) {
		words[n] = fields[n].name;
		len += (size_t)snprintf(all + len, sizeof(all) - len, "%s%s", n ? ", " : "",
					words[n]);
		len = min_of(len, sizeof(all) - 1);
	}
	words[n] = NULL;
	for (size_t i = 0; i < array_size(synonyms); i++)
		if (streq(word, synonyms[i].theirs))
			word = synonyms[i].ours;
	hint = spec_suggestion(word, words, all);
	app_error(r, path, key, "unknown field%s", hint);
}

void app_read_map(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		  const struct app_field *fields, void *into)
{
	bool seen[MAX_FIELDS] = {0};

	for (size_t i = 0; i < node->n; i += 2) {
		const struct spec_yaml *key = node->v[i], *value = node->v[i + 1];
		const struct app_field *field = fields;
		struct app_path at = {.up = path, .key = key->text};

		while (field->name && !streq(field->name, key->text))
			field++;
		if (!field->name) {
			unknown_field(r, &at, key, fields);
			continue;
		}
		/* Keep the first value: the parser has already reported the duplicate key. */
		if (seen[field - fields])
			continue;
		seen[field - fields] = true;
		if (spec_yaml_is_null(value) && field->nullable)
			continue;
		if (spec_yaml_is_null(value))
			app_is(r, &at, value, value->type, "");
		else if (field->load)
			field->load(r, &at, value, (char *)into + field->offset);
		else
			app_int(r, &at, value, field->min, field->max,
				(int64_t *)(void *)((char *)into + field->offset));
	}
	for (size_t i = 0; fields[i].name; i++) {
		if (fields[i].required && !seen[i])
			app_error(r, path, node, "%s is missing", fields[i].name);
	}
}

void *app_add(void *v, size_t *n, size_t size)
{
	void **array = v;

	*array = mem_more(*array, *n, size);
	return memset((char *)*array + (*n)++ * size, 0, size);
}

void app_read_text(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member)
{
	if (app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		*(char **)member = text_copy(node->text);
}

void app_read_word(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member)
{
	if (!app_is(r, path, node, SPEC_YAML_SCALAR, ""))
		return;
	if (!*node->text)
		app_error(r, path, node, "must not be empty");
	else
		*(char **)member = text_copy(node->text);
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
		app_error(r, path, node, "must not contain control characters or line breaks");
	else
		app_read_word(r, path, node, member);
}

/* If TEXT is a number in a form that kxfs refuses, return why. Otherwise return NULL. */
static const char *why_not(const char *text)
{
	const char *s = text + (*text == '-' || *text == '+');
	size_t digits = strspn(s, "0123456789");

	if (digits > 1 && *s == '0' && strspn(s, "0123456789.eE+-") == strlen(s))
		return "is ambiguous, because some YAML parsers read a number with a leading 0 "
		       "as octal; remove the 0";
	if (*s == '0' && strchr("xXoObB", s[1]) && s[1])
		return "is not decimal; write it as a decimal number";
	if (digits && s[digits] == '_')
		return "is ambiguous, because some YAML parsers skip the _; write only digits";
	if (digits && s[digits] == ':')
		return "is ambiguous, because some YAML parsers read it as a base-60 number; "
		       "write a decimal number";
	if (streq(text, ".inf") || streq(text, "-.inf") || streq(text, ".nan"))
		return "is not a finite number";
	return NULL;
}

/* Add the error that NODE is not WANTED ("a number"), with the reason if it is known. */
static void refuse(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   const char *wanted)
{
	struct spec_yaml plain = *node;
	enum spec_yaml_value value;
	const char *why;

	if (!app_is(r, path, node, node->type, ""))
		return;
	if (node->type != SPEC_YAML_SCALAR) {
		app_error(r, path, node, "must be %s, not a %s", wanted,
			  node->type == SPEC_YAML_MAP ? "map" : "list");
		return;
	}
	plain.plain = true;
	value = spec_yaml_resolve(&plain);
	why = why_not(node->text);
	if (!node->plain && (value == SPEC_YAML_INT || value == SPEC_YAML_FLOAT))
		app_error(r, path, node, "must be %s, not text; write %s without quotes", wanted,
			  node->text);
	else if (why)
		app_error(r, path, node, "\"%s\" %s", node->text, why);
	else
		app_error(r, path, node, "must be %s, not \"%s\"", wanted, node->text);
}

bool app_int(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	     int64_t min, int64_t max, int64_t *ret)
{
	int64_t value;

	if (spec_yaml_resolve(node) != SPEC_YAML_INT) {
		refuse(r, path, node, "a whole number");
		return false;
	}
	errno = 0;
	value = strtoll(node->text, NULL, 10);
	if (value < min || (errno && *node->text == '-'))
		app_error(r, path, node, "must be at least %lld, not %s", (long long)min,
			  node->text);
	else if (value > max || errno)
		app_error(r, path, node, "must be at most %lld, not %s", (long long)max,
			  node->text);
	else {
		*ret = value;
		return true;
	}
	return false;
}

void app_read_number(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member)
{
	enum spec_yaml_value value = spec_yaml_resolve(node);
	double number;

	if (value != SPEC_YAML_INT && value != SPEC_YAML_FLOAT) {
		refuse(r, path, node, "a number");
		return;
	}
	number = strtod(node->text, NULL);
	if (number > NUMBER_MAX || number < -NUMBER_MAX)
		app_error(r, path, node, "must be at most %.0f, not %s", NUMBER_MAX, node->text);
	else
		memcpy(member, &number, sizeof(number));
}

/* Return true if no text within NODE contains a NUL. Otherwise add errors. */
static bool check_any(struct app_reader *r, const struct app_path *path,
		      const struct spec_yaml *node)
{
	bool map = node->type == SPEC_YAML_MAP, ok = true;

	if (node->type == SPEC_YAML_SCALAR && strlen(node->text) != node->len) {
		app_error(r, path, node, "must not contain a NUL character");
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
	cleanup_json struct json_object *value = NULL;

	if (!check_any(r, path, node))
		return NULL;
	if (node->type == SPEC_YAML_SCALAR)
		return text_copy(node->text);
	value = spec_yaml_to_json(node);
	return spec_tree_print(value);
}

void app_read_json(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member)
{
	if (app_is(r, path, node, SPEC_YAML_MAP, "write NAME: VALUE"))
		*(char **)member = app_any(r, path, node);
}

void app_read_object(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member)
{
	struct json_object *value cleanup_json = NULL;

	if (app_is(r, path, node, SPEC_YAML_MAP, "write NAME: VALUE") && check_any(r, path, node) &&
	    spec_yaml_to_object(node, &value, r->e) == 0)
		*(char **)member = spec_tree_print(value);
}
