/* SPDX-License-Identifier: MIT */
/*
 * The meaning of plain scalars, and the tree as a JSON value. The rules are YAML 1.2's core schema
 * without the forms that another reader might parse differently: a number is decimal and has no
 * leading zero, a boolean is true or false; anything else is text.
 */
#include "spec/yaml/yaml.h"

#include <math.h>

#include "spec/base/tree.h"

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++) {
		if (streq(text, *words))
			return true;
	}
	return false;
}

static const char *skip_digits(const char *s)
{
	while (*s >= '0' && *s <= '9')
		s++;
	return s;
}

/* [-+]?(0|[1-9][0-9]*) is an integer; with a fraction or exponent (also [-+]?.[0-9]+), a float. */
static enum spec_yaml_value number(const char *text)
{
	enum spec_yaml_value ret = SPEC_YAML_INT;
	const char *s = text + (*text == '-' || *text == '+');
	const char *end = skip_digits(s);
	bool digits = end > s;

	if (*s == '0' && end > s + 1)
		return SPEC_YAML_TEXT;
	if (*end == '.') {
		s = end + 1;
		end = skip_digits(s);
		digits |= end > s;
		ret = SPEC_YAML_FLOAT;
	}
	if (!digits)
		return SPEC_YAML_TEXT;
	if (*end == 'e' || *end == 'E') {
		s = end + 1;
		s += *s == '-' || *s == '+';
		end = skip_digits(s);
		if (end == s)
			return SPEC_YAML_TEXT;
		ret = SPEC_YAML_FLOAT;
	}
	if (*end || (ret == SPEC_YAML_FLOAT && !isfinite(strtod(text, NULL))))
		return SPEC_YAML_TEXT;
	return ret;
}

enum spec_yaml_value spec_yaml_resolve(const struct spec_yaml *node)
{
	static const char *const nulls[] = {"", "~", "null", "Null", "NULL", NULL};
	static const char *const bools[] = {"true",  "True",  "TRUE", "false",
					    "False", "FALSE", NULL};
	enum spec_yaml_value value;

	if (node->type != SPEC_YAML_SCALAR || !node->plain || strlen(node->text) != node->len)
		return SPEC_YAML_TEXT;
	/* No word is a number, and the first characters show whether it is one. */
	value = number(node->text);
	if (value != SPEC_YAML_TEXT)
		return value;
	if (is_one_of(node->text, nulls))
		return SPEC_YAML_NULL;
	return is_one_of(node->text, bools) ? SPEC_YAML_BOOL : SPEC_YAML_TEXT;
}

bool spec_yaml_is_null(const struct spec_yaml *node)
{
	return spec_yaml_resolve(node) == SPEC_YAML_NULL && node->type == SPEC_YAML_SCALAR;
}

static struct json_object *to_json(const struct spec_yaml *node)
{
	struct json_object *ret;

	if (node->type == SPEC_YAML_SCALAR) {
		/* JSON's null is NULL. */
		switch (spec_yaml_resolve(node)) {
		case SPEC_YAML_NULL:
			return NULL;
		case SPEC_YAML_BOOL:
			return spec_tree_bool((node->text[0] | 0x20) == 't');
		case SPEC_YAML_INT:
		case SPEC_YAML_FLOAT:
			return spec_tree_decimal(node->text);
		default:
			return spec_tree_bytes(node->text, node->len);
		}
	}
	if (node->type == SPEC_YAML_LIST) {
		ret = spec_tree_list(node->n);
		for (size_t i = 0; i < node->n; i++)
			spec_tree_append(ret, to_json(node->v[i]));
		return ret;
	}
	ret = spec_tree_map();
	for (size_t i = 0; i < node->n; i += 2)
		spec_tree_set(ret, node->v[i]->text, to_json(node->v[i + 1]));
	return ret;
}

void spec_yaml_to_json(const struct spec_yaml *node, struct json_object **ret)
{
	*ret = to_json(node);
}
