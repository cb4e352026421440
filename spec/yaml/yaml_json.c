/* SPDX-License-Identifier: MIT */
/*
 * What plain scalars mean, the tree as a JSON value, and a JSON value as a tree. The rules are YAML 1.2's core schema
 * without what another reader might take differently: a number is decimal and has no leading
 * zero, a boolean is true or false; all else is text.
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
	/* No word is a number, and whether it is one is seen at its first characters. */
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

/* JSON's null is NULL. */
static struct json_object *scalar_to_json(const struct spec_yaml *node)
{
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

static struct json_object *to_json(const struct spec_yaml *node)
{
	struct json_object *ret;

	if (node->type == SPEC_YAML_SCALAR)
		return scalar_to_json(node);
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

/* --- from JSON --- */

/* Room for the text of a number or a word. */
#define WORD_ROOM 32

/* What a tree takes, then where its next parts go; all are in one piece of memory. */
struct piece {
	size_t nodes, bytes;
	struct spec_yaml *node;
	struct spec_yaml **child;
	char *text;
};

static void measure(struct piece *p, struct json_object *v)
{
	p->nodes++;
	switch (json_object_get_type(v)) {
	case json_type_object: {
		json_object_object_foreach(v, key, value) {
			p->nodes++;
			p->bytes += strlen(key) + 1;
			measure(p, value);
		}
		break;
	}
	case json_type_array:
		for (size_t i = 0; i < json_object_array_length(v); i++)
			measure(p, json_object_array_get_idx(v, i));
		break;
	case json_type_string:
		p->bytes += (size_t)json_object_get_string_len(v) + 1;
		break;
	case json_type_double:
		p->bytes += strlen(json_object_get_string(v)) + 1;
		break;
	default:
		p->bytes += WORD_ROOM;
	}
}

static struct spec_yaml *add_scalar(struct piece *p, const char *text, size_t len, bool plain)
{
	struct spec_yaml *ret = p->node++;

	*ret = (struct spec_yaml){.text = p->text, .len = len, .plain = plain};
	memcpy(p->text, text, len + 1);
	p->text += len + 1;
	return ret;
}

static struct spec_yaml *add_collection(struct piece *p, enum spec_yaml_type type, size_t n)
{
	struct spec_yaml *ret = p->node++;

	*ret = (struct spec_yaml){.type = type, .v = p->child, .n = n};
	p->child += n;
	return ret;
}

static struct spec_yaml *add_int(struct piece *p, struct json_object *v)
{
	int64_t number = json_object_get_int64(v);
	char text[WORD_ROOM];
	int len = number < 0 ? snprintf(text, sizeof(text), "%lld", (long long)number)
			     : snprintf(text, sizeof(text), "%llu",
					(unsigned long long)json_object_get_uint64(v));

	return add_scalar(p, text, (size_t)len, true);
}

static struct spec_yaml *add(struct piece *p, struct json_object *v)
{
	const char *text = "null";
	struct spec_yaml *ret;
	size_t n = 0;

	switch (json_object_get_type(v)) {
	case json_type_object: {
		ret = add_collection(p, SPEC_YAML_MAP, 2 * (size_t)json_object_object_length(v));
		json_object_object_foreach(v, key, value) {
			ret->v[n++] = add_scalar(p, key, strlen(key), false);
			ret->v[n++] = add(p, value);
		}
		return ret;
	}
	case json_type_array:
		ret = add_collection(p, SPEC_YAML_LIST, json_object_array_length(v));
		for (; n < ret->n; n++)
			ret->v[n] = add(p, json_object_array_get_idx(v, n));
		return ret;
	case json_type_string:
		return add_scalar(p, json_object_get_string(v),
				  (size_t)json_object_get_string_len(v), false);
	case json_type_int:
		return add_int(p, v);
	case json_type_null:
		break;
	default:
		text = json_object_get_string(v);
	}
	return add_scalar(p, text, strlen(text), true);
}

struct spec_yaml *spec_yaml_of_json(struct json_object *value)
{
	struct piece p = {0};

	measure(&p, value);
	p.node = mem_grow(NULL, p.nodes * (sizeof(*p.node) + sizeof(struct spec_yaml *)) + p.bytes,
			  1);
	p.child = (struct spec_yaml **)(void *)(p.node + p.nodes);
	p.text = (char *)(p.child + p.nodes);
	return add(&p, value);
}
