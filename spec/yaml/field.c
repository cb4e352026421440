/* SPDX-License-Identifier: MIT */
/* Converts structs to JSON maps and back. A table describes the fields of each struct. */
#include "spec/yaml/field.h"

#include <errno.h>

#include "spec/base/encode.h"
#include "spec/base/mem.h"
#include "spec/base/utf8.h"

/* A text that is not UTF-8 is written as a map with this member, whose value is base64. */
#define BYTES "base64"

void spec_fields_unset(const struct spec_field *fields, void *base)
{
	for (size_t i = 0; fields[i].key; i++)
		if (fields[i].type == SPEC_FIELD_TEXT)
			spec_unset((char **)((char *)base + fields[i].at));
}

static void write_text(struct json_object *o, const char *key, const char *text)
{
	cleanup_free char *other = NULL;

	if (spec_utf8_is(text, strlen(text))) {
		spec_tree_text(o, key, text);
	} else {
		other = spec_base64_encode(text, strlen(text));
		spec_tree_text(spec_tree_add(o, key, spec_tree_map()), BYTES, other);
	}
}

void spec_fields_write(struct json_object *o, const struct spec_field *fields, const void *base)
{
	for (size_t i = 0; fields[i].key; i++) {
		const char *key = fields[i].key;
		const void *p = (const char *)base + fields[i].at;

		switch (fields[i].type) {
		case SPEC_FIELD_TEXT:
			write_text(o, key, *(char *const *)p);
			break;
		case SPEC_FIELD_WORD:
			spec_tree_text(o, key, fields[i].words[*(const unsigned *)p]);
			break;
		case SPEC_FIELD_BOOL:
			spec_tree_add(o, key, spec_tree_bool(*(const bool *)p));
			break;
		case SPEC_FIELD_INT:
			spec_tree_number(o, key, *(const int *)p);
			break;
		case SPEC_FIELD_UNSIGNED:
			spec_tree_number(o, key, *(const unsigned *)p);
			break;
		case SPEC_FIELD_UINT64:
			spec_tree_add(o, key, spec_tree_uint(*(const uint64_t *)p));
			break;
		case SPEC_FIELD_INT64:
		case SPEC_FIELD_TIME:
			spec_tree_number(o, key, *(const int64_t *)p);
			break;
		}
	}
}

static int read_text(const struct spec_value *v, char **ret)
{
	const struct spec_value *encoded = spec_read_member(v, BYTES);
	cleanup_free char *bytes = NULL;
	const char *text;
	size_t len;

	if (encoded)
		v = encoded;
	if (v->type != SPEC_VALUE_STRING)
		return -EINVAL;
	text = v->text;
	len = v->n;
	if (encoded) {
		bytes = spec_base64_decode(v->text, v->n, &len);
		text = bytes;
	}
	if (!text || strlen(text) != len || (!encoded && !spec_utf8_is(text, len)))
		return -EINVAL;
	spec_set(ret, text);
	return 0;
}

static int read_word(const struct spec_value *v, const char *const *words, unsigned *ret)
{
	for (unsigned i = 0; v->type == SPEC_VALUE_STRING && words[i]; i++) {
		if (streq(v->text, words[i])) {
			*ret = i;
			return 0;
		}
	}
	return -EINVAL;
}

static int read_uint64(const struct spec_value *v, uint64_t *ret)
{
	char *end;

	if (v->type != SPEC_VALUE_NUMBER || *v->text == '-')
		return -EINVAL;
	errno = 0;
	*ret = strtoull(v->text, &end, 10);
	return errno || *end ? -EINVAL : 0;
}

static int read_number(const struct spec_value *v, const struct spec_field *f, void *p)
{
	int64_t number;
	char *end;

	if (v->type != SPEC_VALUE_NUMBER)
		return -EINVAL;
	errno = 0;
	number = strtoll(v->text, &end, 10);
	if (errno || *end)
		return -EINVAL;
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

int spec_fields_read(const struct spec_value *o, const struct spec_field *fields, void *base)
{
	if (!o || o->type != SPEC_VALUE_MAP)
		return -EINVAL;
	for (size_t i = 0; fields[i].key; i++) {
		const struct spec_value *v = spec_read_member(o, fields[i].key);
		void *p = (char *)base + fields[i].at;
		int err;

		if (!v && fields[i].optional)
			continue;
		if (!v)
			return -EINVAL;
		switch (fields[i].type) {
		case SPEC_FIELD_TEXT:
			err = read_text(v, p);
			break;
		case SPEC_FIELD_WORD:
			err = read_word(v, fields[i].words, p);
			break;
		case SPEC_FIELD_BOOL:
			err = v->type == SPEC_VALUE_BOOL ? 0 : -EINVAL;
			*(bool *)p = *v->text == 't';
			break;
		case SPEC_FIELD_UINT64:
			err = read_uint64(v, p);
			break;
		default:
			err = read_number(v, &fields[i], p);
		}
		if (err < 0)
			return err;
	}
	return 0;
}
