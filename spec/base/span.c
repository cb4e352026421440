/* SPDX-License-Identifier: MIT */
/*
 * Scanning JSON text.
 */
#include "spec/base/span.h"

static void skip_space(struct spec_span *s)
{
	while (s->p < s->end && strchr(" \t\r\n", *s->p) && *s->p)
		s->p++;
}

/* Move S behind the string that it begins with. */
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

/* Move S behind a bracket and all up to the one that closes it. */
static bool skip_brackets(struct spec_span *s)
{
	size_t depth = 0;

	do {
		if (s->p == s->end)
			return false;
		if (*s->p == '"') {
			if (!skip_string(s))
				return false;
			continue;
		}
		depth += *s->p == '{' || *s->p == '[';
		depth -= *s->p == '}' || *s->p == ']';
		s->p++;
	} while (depth > 0);
	return true;
}

/* Move S behind the value that it begins with; *RET is the value. */
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

/* Move S behind C, which comes next. */
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

bool spec_span_member(struct spec_span object, const char *key, struct spec_span *ret)
{
	struct spec_span name, value;
	bool found = false;

	if (!take_char(&object, '{'))
		return false;
	do {
		if (!take_value(&object, &name) || !take_char(&object, ':') ||
		    !take_value(&object, &value))
			return found;
		if (spec_span_is(name, key)) {
			*ret = value;
			found = true;
		}
	} while (take_char(&object, ','));
	return found;
}

/* Of eight bytes: has one the value C; is one below C? Whoever is told so looks at each. */
#define EACH(c)	       (UINT64_C(0x0101010101010101) * (c))
#define HAS_LESS(w, c) (((w)-EACH(c)) & ~(w)&EACH(0x80))
#define HAS(w, c)      HAS_LESS((w) ^ EACH(c), 1)

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
