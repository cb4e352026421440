/* SPDX-License-Identifier: MIT */
/*
 * Determines the types of plain scalars, and makes a JSON value from a tree. There are two sets of
 * rules.
 *
 * AppDefs: YAML 1.2's core schema, without the forms that other parsers may read differently.
 *
 * Manifests: the rules of kubectl (sigs.k8s.io/yaml, go.yaml.in/yaml/v2). The forms of scalars are
 * those of YAML 1.1 without base 60, and some forms that only Go has: 0o17 is a number, and 08 is a
 * float. A date is text. The code tries the types in the same order as resolve.go in
 * go.yaml.in/yaml/v2.
 */
#include "spec/yaml/yaml.h"

#include <errno.h>
#include <math.h>
#include <strings.h>

#include "spec/base/mem.h"
#include "spec/base/tree.h"
#include "spec/yaml/yaml_input.h"

struct scalar {
	enum spec_yaml_value type;
	bool truth;	/* of a BOOL */
	bool negative;	/* sign of an INT */
	uint64_t whole; /* absolute value of an INT */
	double number;	/* of a FLOAT; may be infinite or NaN */
};

static const struct {
	const char *word;
	bool core; /* the word has this meaning in an AppDef, too */
	struct scalar means;
} words[] = {
	{"", true, {.type = SPEC_YAML_NULL}},
	{"~", true, {.type = SPEC_YAML_NULL}},
	{"null", true, {.type = SPEC_YAML_NULL}},
	{"y", false, {.type = SPEC_YAML_BOOL, .truth = true}},
	{"yes", false, {.type = SPEC_YAML_BOOL, .truth = true}},
	{"true", true, {.type = SPEC_YAML_BOOL, .truth = true}},
	{"on", false, {.type = SPEC_YAML_BOOL, .truth = true}},
	{"n", false, {.type = SPEC_YAML_BOOL}},
	{"no", false, {.type = SPEC_YAML_BOOL}},
	{"false", true, {.type = SPEC_YAML_BOOL}},
	{"off", false, {.type = SPEC_YAML_BOOL}},
	{".inf", false, {.type = SPEC_YAML_FLOAT, .number = INFINITY}},
	{"+.inf", false, {.type = SPEC_YAML_FLOAT, .number = INFINITY}},
	{"-.inf", false, {.type = SPEC_YAML_FLOAT, .number = -INFINITY}},
	{".nan", false, {.type = SPEC_YAML_FLOAT, .number = NAN}},
};

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * True if TEXT is WORD in lower case, in upper case, or with a capital first letter. Instead of
 * ".Nan", the form ".NaN" is valid.
 */
static bool is_form_of(const char *text, const char *word)
{
	size_t upper = 0, letters = 0, first = strcspn(word, "abcdefghijklmnopqrstuvwxyz");

	if (strcasecmp(text, word) != 0)
		return false;
	for (const char *c = text; *c; c++) {
		upper += is_upper(*c);
		letters += is_upper(*c) || (*c >= 'a' && *c <= 'z');
	}
	return upper == 0 || upper == letters ||
	       (streq(word, ".nan") ? streq(text, ".NaN") : upper == 1 && is_upper(text[first]));
}

/* True if TEXT is a decimal number with an optional sign, fraction and exponent. */
static bool is_decimal(const char *text)
{
	const char *s = text + (*text == '-' || *text == '+');
	size_t digits = strspn(s, "0123456789"), more = 0;

	s += digits;
	if (*s == '.')
		more = strspn(++s, "0123456789");
	s += more;
	if (digits + more == 0)
		return false;
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '-' || *s == '+';
		if (!is_digit(*s))
			return false;
		s += strspn(s, "0123456789");
	}
	return !*s;
}

/* --- as in an AppDef --- */

/*
 * Return INT or FLOAT if TEXT is a finite decimal number without superfluous leading zeros.
 * Otherwise return SPEC_YAML_TEXT.
 */
static enum spec_yaml_value number(const char *text)
{
	const char *digits = text + (*text == '-' || *text == '+');

	if (!is_decimal(text) || (digits[0] == '0' && is_digit(digits[1])))
		return SPEC_YAML_TEXT;
	if (!strpbrk(text, ".eE"))
		return SPEC_YAML_INT;
	return isfinite(strtod(text, NULL)) ? SPEC_YAML_FLOAT : SPEC_YAML_TEXT;
}

enum spec_yaml_value spec_yaml_resolve(const struct spec_yaml *node)
{
	enum spec_yaml_value value;

	if (node->type != SPEC_YAML_SCALAR || !node->plain || strlen(node->text) != node->len)
		return SPEC_YAML_TEXT;
	value = number(node->text);
	for (size_t i = 0; value == SPEC_YAML_TEXT && i < array_size(words); i++)
		if (words[i].core && is_form_of(node->text, words[i].word))
			value = words[i].means.type;
	return value;
}

bool spec_yaml_is_null(const struct spec_yaml *node)
{
	return spec_yaml_resolve(node) == SPEC_YAML_NULL;
}

struct json_object *spec_yaml_to_json(const struct spec_yaml *node)
{
	struct json_object *ret;

	if (node->type == SPEC_YAML_SCALAR) {
		/* json-c represents null by a NULL pointer. */
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
			spec_tree_append(ret, spec_yaml_to_json(node->v[i]));
		return ret;
	}
	ret = spec_tree_map();
	for (size_t i = 0; i < node->n; i += 2)
		spec_tree_set(ret, node->v[i]->text, spec_yaml_to_json(node->v[i + 1]));
	return ret;
}

/* --- as kubectl does --- */

#define BINARY_TAG "tag:yaml.org,2002:binary"

static unsigned digit_of(char c)
{
	return is_digit(c)				? (unsigned)(c - '0')
	       : (c | 0x20) >= 'a' && (c | 0x20) <= 'f' ? (unsigned)((c | 0x20) - 'a' + 10)
							: 99;
}

/* Parse TEXT as Go's strconv.ParseInt does; if TEXT exceeds INT64_MAX, as ParseUint does. */
static bool read_whole(const char *text, unsigned base, struct scalar *ret)
{
	struct scalar s = {.type = SPEC_YAML_INT, .negative = *text == '-'};
	bool sign = *text == '-' || *text == '+';

	text += sign;
	if (base == 0) {
		char prefix = *text == '0' ? (char)(text[1] | 0x20) : '\0';

		base = prefix == 'x' ? 16 : prefix == 'o' ? 8 : prefix == 'b' ? 2 : 0;
		text += base ? 2 : 0;
		if (base == 0)
			base = *text == '0' ? 8 : 10;
	}
	if (!*text)
		return false;
	for (; *text; text++) {
		unsigned digit = digit_of(*text);

		if (digit >= base || s.whole > (UINT64_MAX - digit) / base)
			return false;
		s.whole = s.whole * base + digit;
	}
	if (sign && s.whole > (uint64_t)INT64_MAX + s.negative)
		return false;
	*ret = s;
	return true;
}

static bool read_float(const char *text, struct scalar *ret)
{
	*ret = (struct scalar){.type = SPEC_YAML_FLOAT, .number = strtod(text, NULL)};
	return is_decimal(text) && isfinite(ret->number);
}

static bool separates_digits(const char *text)
{
	for (const char *c = text; (c = strchr(c, '_')); c++) {
		if (c == text || !is_digit(c[-1]) || !is_digit(c[1]))
			return false;
	}
	return true;
}

static struct scalar resolve_text(const char *text)
{
	const struct scalar none = {.type = SPEC_YAML_TEXT};
	cleanup_free char *plain = NULL;
	struct scalar ret;
	char *to;

	for (size_t i = 0; i < array_size(words); i++) {
		if (is_form_of(text, words[i].word))
			return words[i].means;
	}
	if (!strchr("0123456789+-.", *text) || (*text == '.' && !separates_digits(text)))
		return none;
	to = plain = text_copy(text);
	for (; *text; text++)
		if (*text != '_')
			*to++ = *text;
	*to = '\0';
	if (*plain != '.' && read_whole(plain, 0, &ret))
		return ret;
	if (read_float(plain, &ret))
		return ret;
	/* Go's YAML parser also accepts a sign after "0b". */
	if (strncmp(plain, "0b", 2) == 0 && read_whole(plain + 2, 2, &ret))
		return ret;
	return none;
}

static bool is_tag(const struct spec_yaml *node, const char *tag)
{
	return node->tag && streq(node->tag, tag);
}

/*
 * Set *RET to the value of NODE. The text of NODE decides its type. Return false if the type does
 * not fit NODE's tag.
 */
static bool resolve(const struct spec_yaml *node, struct scalar *ret)
{
	static const struct {
		const char *tag;
		enum spec_yaml_value type;
	} tags[] = {
		{YAML_NULL_TAG, SPEC_YAML_NULL},
		{YAML_BOOL_TAG, SPEC_YAML_BOOL},
		{YAML_INT_TAG, SPEC_YAML_INT},
		{YAML_FLOAT_TAG, SPEC_YAML_FLOAT},
	};
	const bool has_nul = strlen(node->text) != node->len;

	*ret = (struct scalar){.type = SPEC_YAML_TEXT};
	if (!node->tag) {
		if (node->plain && !has_nul)
			*ret = resolve_text(node->text);
		return true;
	}
	for (size_t i = 0; i < array_size(tags); i++) {
		if (!is_tag(node, tags[i].tag))
			continue;
		if (!has_nul)
			*ret = resolve_text(node->text);
		if (tags[i].type == SPEC_YAML_FLOAT && ret->type == SPEC_YAML_INT)
			*ret = (struct scalar){.type = SPEC_YAML_FLOAT,
					       .number = ret->negative ? -(double)ret->whole
								       : (double)ret->whole};
		return ret->type == tags[i].type;
	}
	return true;
}

static int refuse(const struct spec_yaml *node, const char *what, struct spec_errors *e)
{
	return spec_errors_add(e, -EINVAL, node->line, node->column, "", "\"%s\" %s", node->text,
			       what);
}

static void refuse_tag(const struct spec_yaml *node, struct spec_errors *e)
{
	spec_errors_add(e, -EINVAL, node->line, node->column, "",
			"the value does not fit its tag !!%s", strrchr(node->tag, ':') + 1);
}

/* Return KEY as text, malloc'ed. On error, add the error to E and return NULL. */
static char *key_of(const struct spec_yaml *key, struct spec_errors *e)
{
	struct scalar s;

	if (!resolve(key, &s)) {
		refuse_tag(key, e);
		return NULL;
	}
	if (s.type == SPEC_YAML_BOOL)
		return text_copy(s.truth ? "true" : "false");
	if (s.type == SPEC_YAML_INT && (s.negative || s.whole <= INT64_MAX))
		return text_print("%s%llu", s.negative && s.whole ? "-" : "",
				  (unsigned long long)s.whole);
	if (s.type == SPEC_YAML_TEXT && !is_tag(key, BINARY_TAG))
		return mem_copy(key->text, key->len);
	refuse(key, "can't be a key in a manifest; if it is text, put it in quotes", e);
	return NULL;
}

static struct json_object *to_object(const struct spec_yaml *node, struct spec_errors *e);

static struct json_object *scalar_of(const struct spec_yaml *node, struct spec_errors *e)
{
	struct scalar s;

	if (!resolve(node, &s)) {
		refuse_tag(node, e);
		return NULL;
	}
	switch (s.type) {
	case SPEC_YAML_NULL:
		return NULL;
	case SPEC_YAML_BOOL:
		return spec_tree_bool(s.truth);
	case SPEC_YAML_INT:
		/* Write a number above INT64_MAX as a double: JSON parsers read it as one. */
		if (!s.negative && s.whole > INT64_MAX)
			return spec_tree_double((double)s.whole);
		return spec_tree_int((int64_t)(s.negative ? -s.whole : s.whole));
	case SPEC_YAML_FLOAT:
		if (!isfinite(s.number)) {
			refuse(node,
			       "is a number that JSON, and therefore a manifest, can't "
			       "express",
			       e);
			return NULL;
		}
		/* Write 1.0 as 1, since the server rejects 1.0 for an integer. */
		if (trunc(s.number) == s.number && fabs(s.number) < 0x1p63)
			return spec_tree_int((int64_t)s.number);
		return spec_tree_double(s.number);
	default:
		if (!is_tag(node, BINARY_TAG))
			return spec_tree_bytes(node->text, node->len);
		refuse(node,
		       "is base64 (!!binary), which kxfs does not decode; write the text itself, "
		       "in quotes",
		       e);
		return NULL;
	}
}

static struct json_object *map_of(const struct spec_yaml *node, struct spec_errors *e)
{
	struct json_object *ret = spec_tree_map();
	bool other = false;

	for (size_t i = 0; i < node->n; i += 2) {
		cleanup_free char *key = key_of(node->v[i], e);

		if (!key)
			continue;
		/*
		 * Two keys with the same spelling are not reported here, because the parser has
		 * already reported them. OTHER is true after a key that the conversion has changed.
		 */
		other |= !streq(key, node->v[i]->text);
		if (other && json_object_object_get_ex(ret, key, NULL))
			spec_errors_add(
				e, -EINVAL, node->v[i]->line, node->v[i]->column, "",
				"duplicate key \"%s\": kubectl reads %s and an earlier key as the same key",
				key, node->v[i]->text);
		spec_tree_set(ret, key, to_object(node->v[i + 1], e));
	}
	return ret;
}

static struct json_object *to_object(const struct spec_yaml *node, struct spec_errors *e)
{
	struct json_object *ret;

	if (node->type == SPEC_YAML_SCALAR)
		return scalar_of(node, e);
	if (node->type == SPEC_YAML_MAP)
		return map_of(node, e);
	ret = spec_tree_list(node->n);
	for (size_t i = 0; i < node->n; i++)
		spec_tree_append(ret, to_object(node->v[i], e));
	return ret;
}

int spec_yaml_to_object(const struct spec_yaml *node, struct json_object **ret,
			struct spec_errors *e)
{
	size_t before = e->n + e->dropped;
	struct json_object *object = to_object(node, e);

	if (e->n + e->dropped == before) {
		*ret = object;
		return 0;
	}
	json_object_put(object);
	return e->err;
}
