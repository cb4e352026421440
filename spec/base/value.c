/* SPDX-License-Identifier: MIT */
/*
 * Parses JSON (RFC 8259) in one pass over a copy of the text. The parser replaces escapes in the
 * copy, and puts a NUL after each string and each word (a number, true, false or null).
 *
 * All values are in one array. The parser appends values at its low end. When a map or a list ends,
 * the parser moves the members or items to the high end. The array is large enough, because the
 * number of values is at most 1 plus the number of opening brackets and commas.
 */
#include "spec/base/value.h"

#include <errno.h>
#include <limits.h>

#include "spec/base/limits.h"
#include "spec/base/mem.h"
#include "spec/base/span.h"
#include "spec/base/time.h"
#include "spec/base/utf8.h"

/* A splitter (spec/api/split.h) delivers no object that is deeper than this. */
#define MAX_DEPTH (2 * SPEC_MAX_DEPTH + 2)

#define REPLACEMENT 0xfffd /* replaces half a surrogate pair */

struct parser {
	char *p; /* next byte of the copy, which ends with a NUL */
	/*
	 * The byte after the last word; NULL if there is none, or if take() has already replaced
	 * this byte by a NUL.
	 */
	char *word_end;
	struct spec_value *low;		    /* where the next value is appended */
	struct spec_value *high;	    /* first value at the high end */
	struct spec_value *open[MAX_DEPTH]; /* maps and lists that contain P, outermost first */
	unsigned depth;
};

/* Skip white space. Return the next byte without moving past it. */
static char next(struct parser *s)
{
	while (*s->p == ' ' || *s->p == '\n' || *s->p == '\t' || *s->p == '\r')
		s->p++;
	return *s->p;
}

/* Skip white space. Return the next byte, and move past it. */
static char take(struct parser *s)
{
	char c = next(s);

	s->p += c != '\0';
	if (s->word_end)
		*take_ptr(s->word_end) = '\0';
	return c;
}

/* --- strings --- */

static char *put_utf8(char *to, unsigned c)
{
	if (c < 0x80) {
		*to++ = (char)c;
		return to;
	}
	if (c < 0x800) {
		*to++ = (char)(0xc0 | c >> 6);
	} else {
		if (c < 0x10000) {
			*to++ = (char)(0xe0 | c >> 12);
		} else {
			*to++ = (char)(0xf0 | c >> 18);
			*to++ = (char)(0x80 | (c >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (c >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (c & 0x3f));
	return to;
}

/*
 * S is after "\u". Decode this escape (for a surrogate pair, also the second escape) and write the
 * character to TO. Return the end of the written bytes; NULL if the escape is invalid.
 */
static char *put_unicode(struct parser *s, char *to)
{
	int c = spec_utf8_hex4(s->p);
	unsigned pair;

	if (c < 0)
		return NULL;
	s->p += 4;
	if (c < 0xd800 || c > 0xdfff)
		return put_utf8(to, (unsigned)c);
	pair = s->p[0] == '\\' && s->p[1] == 'u' ? spec_utf8_pair(c, spec_utf8_hex4(s->p + 2)) : 0;
	if (!pair)
		return put_utf8(to, REPLACEMENT);
	s->p += 6;
	return put_utf8(to, pair);
}

/*
 * Parse a string, from the byte after its opening quote. Return the string; NULL if it is invalid
 * or has no closing quote.
 */
static const char *string(struct parser *s, const char *end, unsigned *ret_len)
{
	static const char escaped[] = "\"\\/bfnrt", plain[] = "\"\\/\b\f\n\r\t";
	char *from = s->p, *to = from;

	for (;;) {
		char *stop = s->p + (spec_span_plain(s->p, end) - s->p);
		const char *at;

		if (to != s->p)
			memmove(to, s->p, (size_t)(stop - s->p));
		to += stop - s->p;
		s->p = stop;
		if (*stop != '"' && *stop != '\\')
			return NULL;
		s->p++;
		if (*stop == '"') {
			*to = '\0';
			*ret_len = (unsigned)(to - from);
			return from;
		}
		at = *s->p ? strchr(escaped, *s->p) : NULL;
		if (at)
			*to++ = plain[at - escaped];
		else if (*s->p != 'u')
			return NULL;
		s->p++;
		if (!at)
			to = put_unicode(s, to);
		if (!to)
			return NULL;
	}
}

/* --- words --- */

static bool digits(struct parser *s)
{
	const char *from = s->p;

	while (*s->p >= '0' && *s->p <= '9')
		s->p++;
	return s->p > from;
}

static bool number(struct parser *s)
{
	const char *first;

	s->p += *s->p == '-';
	first = s->p;
	if (!digits(s) || (*first == '0' && s->p > first + 1))
		return false;
	if (*s->p == '.') {
		s->p++;
		if (!digits(s))
			return false;
	}
	if (*s->p != 'e' && *s->p != 'E')
		return true;
	s->p++;
	s->p += *s->p == '+' || *s->p == '-';
	return digits(s);
}

static bool word(struct parser *s, const char *text)
{
	size_t n = strlen(text);
	bool is = strncmp(s->p, text, n) == 0;

	s->p += is ? n : 0;
	return is;
}

static bool scalar(struct parser *s, struct spec_value *v, const char *end)
{
	bool ok;

	if (*s->p == '"') {
		s->p++;
		v->type = SPEC_VALUE_STRING;
		v->text = string(s, end, &v->n);
		return v->text;
	}
	v->text = s->p;
	if (*s->p == 'n') {
		v->type = SPEC_VALUE_NULL;
		ok = word(s, "null");
	} else if (*s->p == 't' || *s->p == 'f') {
		v->type = SPEC_VALUE_BOOL;
		ok = word(s, *s->p == 't' ? "true" : "false");
	} else {
		v->type = SPEC_VALUE_NUMBER;
		ok = number(s);
	}
	s->word_end = s->p;
	return ok;
}

/* --- structure --- */

/* Parse a scalar, or the opening bracket of a map or list. KEY is "" outside maps. */
static bool begin(struct parser *s, const char *key, const char *end)
{
	struct spec_value *v = s->low++;
	char c = next(s);

	*v = (struct spec_value){.key = key, .text = ""};
	if (c != '{' && c != '[')
		return scalar(s, v, end);
	if (s->depth == MAX_DEPTH)
		return false;
	s->p++;
	v->type = c == '{' ? SPEC_VALUE_MAP : SPEC_VALUE_LIST;
	s->open[s->depth++] = v;
	return true;
}

/* Parse the next member of the innermost map, or the next item of the innermost list. */
static bool item(struct parser *s, const char *end)
{
	const char *key;
	unsigned len;

	if (s->open[s->depth - 1]->type == SPEC_VALUE_LIST)
		return begin(s, "", end);
	if (take(s) != '"')
		return false;
	key = string(s, end, &len);
	return key && take(s) == ':' && begin(s, key, end);
}

static bool parse(struct parser *s, const char *end)
{
	if (!begin(s, "", end))
		return false;
	while (s->depth > 0) {
		struct spec_value *in = s->open[s->depth - 1];
		char closing = in->type == SPEC_VALUE_MAP ? '}' : ']', c = next(s);

		if (s->low > in + 1 || c == closing) {
			c = take(s);
			if (c == closing) {
				s->depth--;
				in->n = (unsigned)(s->low - (in + 1));
				s->high -= in->n;
				memmove(s->high, in + 1, in->n * sizeof(*in));
				in->items = s->high;
				s->low = in + 1;
				continue;
			}
			if (c != ',')
				return false;
		}
		if (!item(s, end))
			return false;
	}
	return take(s) == '\0' && s->p == end;
}

int spec_value_parse(const char *json, size_t len, struct spec_value **ret)
{
	cleanup_free struct spec_value *values = NULL;
	struct parser s = {0};
	size_t n = 1;
	char *text;

	if (len >= INT_MAX)
		return -EINVAL;
	for (size_t i = 0; i < len; i++)
		n += json[i] == ',' || json[i] == '{' || json[i] == '[';
	values = mem_grow(NULL, n * sizeof(*values) + len + 1, 1);
	text = (char *)&values[n];
	memcpy(text, json, len);
	text[len] = '\0';
	s.p = text;
	s.low = values;
	s.high = &values[n];
	if (!parse(&s, text + len))
		return -EINVAL;
	*ret = take_ptr(values);
	return 0;
}

int spec_value_parse_map(const char *json, size_t len, struct spec_value **ret)
{
	cleanup_free struct spec_value *value = NULL;
	int err = len <= SPEC_MAX_WATCHED ? spec_value_parse(json, len, &value) : -EINVAL;

	if (err == 0 && value->type != SPEC_VALUE_MAP)
		err = -EINVAL;
	if (err == 0)
		*ret = take_ptr(value);
	return err;
}

/* --- members --- */

const struct spec_value *spec_read_member(const struct spec_value *o, const char *key)
{
	if (!o || o->type != SPEC_VALUE_MAP)
		return NULL;
	for (const struct spec_value *v = o->items + o->n; v > o->items; v--)
		if (streq(v[-1].key, key))
			return v - 1;
	return NULL;
}

static const struct spec_value *get(const struct spec_value *o, const char *key,
				    enum spec_value_type type)
{
	const struct spec_value *ret = spec_read_member(o, key);

	return ret && ret->type == type ? ret : NULL;
}

const struct spec_value *spec_read_map(const struct spec_value *o, const char *key)
{
	return get(o, key, SPEC_VALUE_MAP);
}

const struct spec_value *spec_read_list(const struct spec_value *o, const char *key)
{
	return get(o, key, SPEC_VALUE_LIST);
}

const char *spec_read_text(const struct spec_value *o, const char *key)
{
	const struct spec_value *ret = get(o, key, SPEC_VALUE_STRING);

	return ret ? ret->text : "";
}

const char *spec_read_word(const struct spec_value *o, const char *key)
{
	const struct spec_value *ret = spec_read_member(o, key);

	return ret && ret->type == SPEC_VALUE_NUMBER ? ret->text : spec_read_text(o, key);
}

int spec_read_int(const struct spec_value *o, const char *key, int none)
{
	const struct spec_value *number = get(o, key, SPEC_VALUE_NUMBER);
	int value = number ? spec_read_digits(number->text) : -1;

	return value >= 0 ? value : none;
}

bool spec_read_flag(const struct spec_value *o, const char *key, bool none)
{
	const struct spec_value *value = get(o, key, SPEC_VALUE_BOOL);

	return value ? *value->text == 't' : none;
}

bool spec_read_bool(const struct spec_value *o, const char *key)
{
	return spec_read_flag(o, key, false);
}

int64_t spec_read_time(const struct spec_value *o, const char *key)
{
	const char *text = spec_read_text(o, key);
	int64_t ns;

	/* Drop the fraction, because only some times of an object have one. */
	if (!*text || spec_time_parse(text, strlen(text), &ns) != strlen(text))
		return 0;
	return ns > 0 && ns < INT64_MAX ? ns - ns % NS_PER_S : 0;
}

const struct spec_value *spec_read_at(const struct spec_value *list, size_t i)
{
	return list && i < list->n ? &list->items[i] : NULL;
}

size_t spec_read_count(const struct spec_value *list)
{
	return list ? list->n : 0;
}

const struct spec_value *spec_read_item(const struct spec_value *list, const char *key,
					const char *text)
{
	for (size_t i = 0; i < spec_read_count(list); i++)
		if (streq(spec_read_text(spec_read_at(list, i), key), text))
			return spec_read_at(list, i);
	return NULL;
}

int spec_read_digits(const char *text)
{
	size_t n = strspn(text, "0123456789");
	unsigned long value;

	if (n == 0 || n > 10 || text[n])
		return -1;
	value = strtoul(text, NULL, 10);
	return value <= INT32_MAX ? (int)value : -1;
}

void spec_read_copy(char **field, const char *text, size_t max)
{
	cleanup_free char *cut = NULL;
	size_t n = strnlen(text, max + 1);

	if (n <= max) {
		spec_set(field, text);
		return;
	}
	for (n = max; n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80;)
		n--;
	cut = mem_copy(text, n);
	spec_set(field, cut);
}

void spec_read_copy_word(char **field, const struct spec_value *o, const char *key)
{
	spec_read_copy(field, spec_read_text(o, key), READ_MAX_WORD);
}

void spec_read_copy_message(char **field, const struct spec_value *o)
{
	spec_read_copy(field, spec_read_text(o, "message"), READ_MAX_MESSAGE);
}
