/* SPDX-License-Identifier: MIT */
/* Scans JSON text without parsing it. */
#include "spec/base/span.h"

/*
 * Test the eight bytes of W together. HAS is nonzero if a byte equals C. HAS_LESS is nonzero if a
 * byte is less than C. Each may be nonzero by mistake: the caller must then check the bytes one by
 * one.
 */
#define EACH(c)	       (UINT64_C(0x0101010101010101) * (c))
#define HAS_LESS(w, c) (((w)-EACH(c)) & ~(w)&EACH(0x80))
#define HAS(w, c)      HAS_LESS((w) ^ EACH(c), 1)

/* --- strings --- */

const char *spec_span_plain(const char *p, const char *end)
{
	uint64_t w;

	for (; end - p >= (ptrdiff_t)sizeof(w); p += sizeof(w)) {
		memcpy(&w, p, sizeof(w));
		if (HAS(w, '"') || HAS(w, '\\') || HAS_LESS(w, 0x20))
			break;
	}
	while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20)
		p++;
	return p;
}

/* --- brackets --- */

const char *spec_span_nest(struct spec_nest *n, size_t max, const char *p, const char *end)
{
	for (; p < end && n->depth > 0 && n->depth <= max; p++) {
		if (n->escape) {
			n->escape = false;
		} else if (n->string) {
			p = spec_span_plain(p, end);
			if (p == end)
				break;
			n->string = *p != '"';
			n->escape = *p == '\\';
		} else {
			n->string = *p == '"';
			n->depth += *p == '{' || *p == '[';
			n->depth -= *p == '}' || *p == ']';
		}
	}
	return p;
}

/* --- members --- */

static void skip_space(struct spec_span *s)
{
	while (s->p < s->end && strchr(" \t\r\n", *s->p) && *s->p)
		s->p++;
}

/* Move the start of S past the string with which S begins. */
static bool skip_string(struct spec_span *s)
{
	if (s->p == s->end || *s->p != '"')
		return false;
	for (s->p++; s->p < s->end; s->p++) {
		if (*s->p == '"') {
			s->p++;
			return true;
		}
		if (*s->p == '\\' && ++s->p == s->end)
			return false;
	}
	return false;
}

/* Move the start of S past the brackets with which S begins. */
static bool skip_brackets(struct spec_span *s)
{
	struct spec_nest nest = {.depth = 1};

	s->p = spec_span_nest(&nest, SIZE_MAX, s->p + 1, s->end);
	return nest.depth == 0;
}

/* Set *RET to the value with which S begins, and move the start of S past this value. */
static bool take_value(struct spec_span *s, struct spec_span *ret)
{
	bool ok;

	skip_space(s);
	ret->p = s->p;
	if (s->p == s->end)
		return false;
	if (*s->p == '"') {
		ok = skip_string(s);
	} else if (*s->p == '{' || *s->p == '[') {
		ok = skip_brackets(s);
	} else {
		while (s->p < s->end && !strchr(",}] \t\r\n", *s->p))
			s->p++;
		ok = s->p > ret->p;
	}
	ret->end = s->p;
	return ok;
}

/* Skip white space at the start of S, and C if it follows. Return false if C does not follow. */
static bool take_char(struct spec_span *s, char c)
{
	skip_space(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

bool spec_span_is(struct spec_span value, const char *text)
{
	size_t n = strlen(text);

	return (size_t)(value.end - value.p) == n + 2 && *value.p == '"' &&
	       memcmp(value.p + 1, text, n) == 0;
}

/* Like spec_span_members. If PART is true, also accept a value that is cut off at the end. */
static void find(struct spec_span object, const char *const *keys, size_t n, bool part,
		 struct spec_span *ret)
{
	struct spec_span name, value;
	bool whole;

	memset(ret, 0, n * sizeof(*ret));
	if (!take_char(&object, '{'))
		return;
	do {
		if (!take_value(&object, &name) || !take_char(&object, ':'))
			return;
		whole = take_value(&object, &value);
		for (size_t i = 0; (whole || part) && i < n; i++)
			if (spec_span_is(name, keys[i]))
				ret[i] = value;
	} while (whole && take_char(&object, ','));
}

void spec_span_members(struct spec_span object, const char *const *keys, size_t n,
		       struct spec_span *ret)
{
	find(object, keys, n, false, ret);
}

bool spec_span_member(struct spec_span object, const char *key, struct spec_span *ret)
{
	find(object, &key, 1, false, ret);
	return ret->p;
}

bool spec_span_begun(struct spec_span object, const char *key, struct spec_span *ret)
{
	find(object, &key, 1, true, ret);
	return ret->p;
}
