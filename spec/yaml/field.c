/* SPDX-License-Identifier: MIT */
/*
 * A table has for each field of a struct its name in JSON, its type and its range; writing and reading
 * both follow the table, so they can't differ.
 */
#include "spec/yaml/field.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>

#include "spec/base/base64.h"
#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/base/utf8.h"
#include "spec/yaml/yaml.h"

#define USUAL_DEPTH 16

/* JSON is UTF-8, and a path on disk need not be: other bytes are written as a map with this member. */
#define BYTES "base64"

void spec_fields_unset(const struct spec_field *fields, size_t n, void *base)
{
	for (size_t i = 0; i < n; i++)
		if (fields[i].type == SPEC_FIELD_TEXT)
			spec_unset((char **)((char *)base + fields[i].at));
}

static void write_text(struct json_object *o, const char *key, const char *text, bool people)
{
	cleanup_free char *other = NULL;

	if (spec_utf8_is(text)) {
		spec_tree_text(o, key, text);
	} else if (people) {
		other = spec_utf8_clean_copy(text, "\n\t");
		spec_tree_text(o, key, other);
	} else {
		other = spec_base64_encode(text, strlen(text));
		spec_tree_text(spec_tree_add(o, key, spec_tree_map()), BYTES, other);
	}
}

/* For people, a time is a date; a program wants the whole number back. */
static void write_time(struct json_object *o, const char *key, int64_t ns, bool people)
{
	char text[32];

	if (!people) {
		spec_tree_number(o, key, ns);
	} else if (ns == 0) {
		spec_tree_null(o, key);
	} else {
		spec_time_text(ns, text);
		spec_tree_add(o, key, spec_yaml_new_time(text));
	}
}

void spec_fields_write(struct json_object *o, const struct spec_field *fields, size_t n,
		       const void *base, bool people)
{
	for (size_t i = 0; i < n; i++) {
		const char *key = fields[i].key;
		const void *p = (const char *)base + fields[i].at;

		switch (fields[i].type) {
		case SPEC_FIELD_TEXT:
			write_text(o, key, *(char *const *)p, people);
			break;
		case SPEC_FIELD_WORD:
			spec_tree_text(o, key, fields[i].words[*(const unsigned *)p]);
			break;
		case SPEC_FIELD_BOOL:
			spec_tree_add(o, key, json_object_new_boolean(*(const bool *)p));
			break;
		case SPEC_FIELD_INT:
			spec_tree_number(o, key, *(const int *)p);
			break;
		case SPEC_FIELD_UNSIGNED:
			spec_tree_number(o, key, *(const unsigned *)p);
			break;
		case SPEC_FIELD_INT64:
			spec_tree_number(o, key, *(const int64_t *)p);
			break;
		case SPEC_FIELD_UINT64:
			spec_tree_add(o, key, json_object_new_uint64(*(const uint64_t *)p));
			break;
		case SPEC_FIELD_TIME:
			write_time(o, key, *(const int64_t *)p, people);
			break;
		}
	}
}

static int read_bytes(struct json_object *v, char **ret)
{
	cleanup_free char *bytes = NULL;
	size_t len;

	if (!json_object_is_type(v, json_type_string))
		return -EINVAL;
	bytes = spec_base64_decode(json_object_get_string(v), (size_t)json_object_get_string_len(v),
				   &len);
	if (!bytes || strlen(bytes) != len)
		return -EINVAL;
	spec_set(ret, bytes);
	return 0;
}

static int read_text(struct json_object *v, char **ret)
{
	struct json_object *bytes;
	const char *text;

	if (json_object_is_type(v, json_type_object) && json_object_object_get_ex(v, BYTES, &bytes))
		return read_bytes(bytes, ret);
	if (!json_object_is_type(v, json_type_string))
		return -EINVAL;
	text = json_object_get_string(v);
	if (strlen(text) != (size_t)json_object_get_string_len(v))
		return -EINVAL;
	spec_set(ret, text);
	return 0;
}

static int read_word(struct json_object *v, const char *const *words, unsigned *ret)
{
	for (unsigned i = 0; json_object_is_type(v, json_type_string) && words[i]; i++) {
		if (streq(json_object_get_string(v), words[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int read_number(struct json_object *v, const struct spec_field *f, void *p)
{
	int64_t number = json_object_get_int64(v);

	if (!json_object_is_type(v, json_type_int))
		return -EINVAL;
	if (f->type == SPEC_FIELD_UINT64) {
		*(uint64_t *)p = json_object_get_uint64(v);
		return number < 0 ? -EINVAL : 0;
	}
	if (f->type == SPEC_FIELD_TIME ? number < 0 : number < f->min || number > f->max)
		return -EINVAL;
	if (f->type == SPEC_FIELD_INT)
		*(int *)p = (int)number;
	else if (f->type == SPEC_FIELD_UNSIGNED)
		*(unsigned *)p = (unsigned)number;
	else
		*(int64_t *)p = number;
	return 0;
}

int spec_fields_version(struct json_object *o, int64_t version)
{
	struct json_object *v;

	if (!json_object_object_get_ex(o, "version", &v) || !json_object_is_type(v, json_type_int))
		return -EINVAL;
	return json_object_get_int64(v) == version ? 0 : -ENOTSUP;
}

int spec_fields_read(struct json_object *o, const struct spec_field *fields, size_t n, void *base)
{
	if (!json_object_is_type(o, json_type_object))
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		void *p = (char *)base + fields[i].at;
		struct json_object *v;
		int err = -EINVAL;

		if (!json_object_object_get_ex(o, fields[i].key, &v)) {
			if (fields[i].optional)
				continue;
			return -EINVAL;
		}
		if (fields[i].type == SPEC_FIELD_TEXT) {
			err = read_text(v, p);
		} else if (fields[i].type == SPEC_FIELD_WORD) {
			err = read_word(v, fields[i].words, p);
		} else if (fields[i].type != SPEC_FIELD_BOOL) {
			err = read_number(v, &fields[i], p);
		} else if (json_object_is_type(v, json_type_boolean)) {
			*(bool *)p = json_object_get_boolean(v);
			err = 0;
		}
		if (err < 0)
			return err;
	}
	return 0;
}

/* Nothing but white space? */
static bool is_blank(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!isspace((unsigned char)text[i]))
			return false;
	return true;
}

static struct json_object *parse(const char *text, size_t len, int depth, size_t *ret_end,
				 enum json_tokener_error *ret_err)
{
	struct json_tokener *tok = json_tokener_new_ex(depth);
	struct json_object *ret;

	if (!tok)
		mem_out();
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8 |
					    JSON_TOKENER_ALLOW_TRAILING_CHARS);
	ret = json_tokener_parse_ex(tok, text, (int)len);
	*ret_end = json_tokener_get_parse_end(tok);
	*ret_err = json_tokener_get_error(tok);
	json_tokener_free(tok);
	return ret;
}

int spec_fields_parse(const char *text, size_t len, int depth, struct json_object **ret)
{
	struct json_object *root cleanup_json = NULL;
	enum json_tokener_error err;
	size_t end;

	if (len > INT_MAX)
		return -EINVAL;
	/* A tokener has room for all levels from its start, and few texts have many. */
	root = parse(text, len, min_of(depth, USUAL_DEPTH), &end, &err);
	if (err == json_tokener_error_depth && depth > USUAL_DEPTH)
		root = parse(text, len, depth, &end, &err);
	if (!json_object_is_type(root, json_type_object) || !is_blank(text + end, len - end))
		return -EINVAL;
	*ret = take_ptr(root);
	return 0;
}
