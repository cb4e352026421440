/* SPDX-License-Identifier: MIT */
/*
 * A scan by recursive descent that knows JSON as servers write it: at the first byte that is anything else it gives up,
 * and the caller parses the whole. So it need not agree with json-c about what is wrong, only about what is right.
 */
#include "spec/base/pick.h"

#include "spec/base/mem.h"
#include "spec/base/span.h"

/* json-c takes deeper ones; few objects are. */
#define DEPTH_MAX 48

struct scan {
	const char *p, *end;
	char *out;
};

static void spaces(struct scan *s)
{
	while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r'))
		s->p++;
}

static bool take(struct scan *s, char c)
{
	spaces(s);
	if (s->p == s->end || *s->p != c)
		return false;
	s->p++;
	return true;
}

/* --- what is only passed over ---------------------------------------------------------------- */

static bool is_hex(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Behind a backslash. Surrogates are left to json-c. */
static bool escape(struct scan *s)
{
	const char *p = s->p;

	if (s->end - p < 1)
		return false;
	if (*p != 'u') {
		s->p++;
		return *p && strchr("\"\\/bfnrt", *p);
	}
	if (s->end - p < 5 || !is_hex(p[1]) || !is_hex(p[2]) || !is_hex(p[3]) || !is_hex(p[4]) ||
	    p[1] == 'd' || p[1] == 'D')
		return false;
	s->p += 5;
	return true;
}

/* Behind the quote that opens a string. ESCAPES: it may have some. */
static bool string(struct scan *s, bool escapes)
{
	const char *p = s->p;

	for (;;) {
		p = spec_span_plain(p, s->end);
		if (p == s->end || (unsigned char)*p < 0x20)
			return false;
		s->p = p + 1;
		if (*p == '"')
			return true;
		if (!escapes || !escape(s))
			return false;
		p = s->p;
	}
}

static bool digits(struct scan *s)
{
	const char *from = s->p;

	while (s->p < s->end && *s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from;
}

/* Of numbers the whole ones alone: objects have hardly any others. */
static bool number(struct scan *s)
{
	const char *from;

	if (*s->p == '-')
		s->p++;
	from = s->p;
	return digits(s) && (*from != '0' || s->p == from + 1);
}

static bool word(struct scan *s, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(s->end - s->p) < n || memcmp(s->p, text, n) != 0)
		return false;
	s->p += n;
	return true;
}

/* What may stand behind a value. */
static bool ends(const struct scan *s)
{
	return s->p < s->end && *s->p && strchr(" \n\t\r,]}", *s->p);
}

static bool scalar(struct scan *s)
{
	spaces(s);
	if (s->p == s->end)
		return false;
	switch (*s->p) {
	case '"':
		s->p++;
		return string(s, true);
	case 't':
		return word(s, "true") && ends(s);
	case 'f':
		return word(s, "false") && ends(s);
	case 'n':
		return word(s, "null") && ends(s);
	default:
		return number(s) && ends(s);
	}
}

/* A key and its colon. */
static bool key(struct scan *s, const char **ret, size_t *ret_len)
{
	if (!take(s, '"'))
		return false;
	*ret = s->p;
	if (!string(s, false))
		return false;
	*ret_len = (size_t)(s->p - 1 - *ret);
	return take(s, ':');
}

static bool skip(struct scan *s, unsigned depth)
{
	const char *name;
	size_t n;

	spaces(s);
	if (s->p == s->end || depth == DEPTH_MAX)
		return false;
	if (*s->p != '{' && *s->p != '[')
		return scalar(s);
	if (*s->p++ == '{') {
		if (take(s, '}'))
			return true;
		do {
			if (!key(s, &name, &n) || !skip(s, depth + 1))
				return false;
		} while (take(s, ','));
		return take(s, '}');
	}
	if (take(s, ']'))
		return true;
	do {
		if (!skip(s, depth + 1))
			return false;
	} while (take(s, ','));
	return take(s, ']');
}

/* --- what is copied --------------------------------------------------------------------------- */

static void put(struct scan *s, const char *from, size_t n)
{
	memcpy(s->out, from, n);
	s->out += n;
}

static const struct spec_pick *find(const struct spec_pick *pick, const char *name, size_t n)
{
	for (; pick->key; pick++)
		if (strncmp(pick->key, name, n) == 0 && !pick->key[n])
			return pick;
	return NULL;
}

static bool copy(struct scan *s, const struct spec_pick *pick, unsigned depth);

static bool copy_object(struct scan *s, const struct spec_pick *pick, unsigned depth)
{
	const struct spec_pick *row;
	bool some = false;
	const char *name;
	size_t n;

	put(s, "{", 1);
	if (!take(s, '}')) {
		do {
			if (!key(s, &name, &n))
				return false;
			row = find(pick, name, n);
			if (!row && !skip(s, depth + 1))
				return false;
			if (!row)
				continue;
			if (some)
				put(s, ",", 1);
			some = true;
			put(s, name - 1, n + 2);
			put(s, ":", 1);
			if (!copy(s, row->of, depth + 1))
				return false;
		} while (take(s, ','));
		if (!take(s, '}'))
			return false;
	}
	put(s, "}", 1);
	return true;
}

static bool copy_list(struct scan *s, const struct spec_pick *pick, unsigned depth)
{
	bool some = false;

	put(s, "[", 1);
	if (!take(s, ']')) {
		do {
			if (some)
				put(s, ",", 1);
			some = true;
			if (!copy(s, pick, depth + 1))
				return false;
		} while (take(s, ','));
		if (!take(s, ']'))
			return false;
	}
	put(s, "]", 1);
	return true;
}

static bool copy(struct scan *s, const struct spec_pick *pick, unsigned depth)
{
	const char *from;

	spaces(s);
	if (s->p == s->end || depth == DEPTH_MAX)
		return false;
	from = s->p;
	if (!pick || (*from != '{' && *from != '[')) {
		if (!skip(s, depth))
			return false;
		put(s, from, (size_t)(s->p - from));
		return true;
	}
	s->p++;
	return *from == '{' ? copy_object(s, pick, depth) : copy_list(s, pick, depth);
}

char *spec_pick(const char *json, size_t len, const struct spec_pick *pick, size_t *ret_len)
{
	char *out cleanup_free = mem_grow(NULL, len + 1, 1); /* nothing becomes longer */
	struct scan s = {.p = json, .end = json + len, .out = out};

	spaces(&s);
	if (s.p == s.end || *s.p != '{' || !copy(&s, pick, 0))
		return NULL;
	spaces(&s);
	if (s.p != s.end)
		return NULL;
	*s.out = '\0';
	*ret_len = (size_t)(s.out - out);
	return take_ptr(out);
}
