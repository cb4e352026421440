/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a document before libyaml sees them: its encoding and its characters are checked
 * here, because here the message can say where and what to do. JSON's surrogate pairs, which
 * YAML lacks, are replaced.
 */
#include "spec/yaml_input.h"

#include <errno.h>
#include <json-c/json.h>

#include "spec/limits.h"
#include "spec/utf8.h"

bool yaml_input_is_printable(uint32_t c)
{
	if (c < 0xa0)
		return c >= 0x20 && c < 0x7f;
	/* line breaks to some readers, byte order mark, noncharacters of the first plane */
	return c != 0x2028 && c != 0x2029 && c != 0xfeff && c != 0xfffe && c != 0xffff;
}

static int refuse_encoding(const char *text, size_t len, struct spec_errors *e)
{
	static const struct {
		const char *mark, *name;
		size_t n;
	} marks[] = {{"\xff\xfe\0\0", "UTF-32", 4},
		     {"\0\0\xfe\xff", "UTF-32", 4},
		     {"\xff\xfe", "UTF-16", 2},
		     {"\xfe\xff", "UTF-16", 2}};

	for (size_t i = 0; i < array_size(marks); i++) {
		if (len >= marks[i].n && memcmp(text, marks[i].mark, marks[i].n) == 0)
			return spec_errors_add(e, -EINVAL, 1, 1, "",
					       "the file is encoded in %s; save it as UTF-8",
					       marks[i].name);
	}
	return 0;
}

static int refuse_char(uint32_t c, unsigned line, unsigned column, struct spec_errors *e)
{
	const char *what = "the control character";

	if (c == 0)
		return spec_errors_add(e, -EINVAL, line, column, "",
				       "the file holds a NUL byte; is it text?");
	if (c == 0x85 || c == 0x2028 || c == 0x2029)
		what = "the line separator";
	else if (c == 0xfeff)
		what = "a byte order mark inside the text,";
	else if (c > 0xa0)
		what = "the character";
	return spec_errors_add(
		e, -EINVAL, line, column, "",
		"%s U+%04X can't stand in a file; write it as \"\\u%04x\", in double "
		"quotes",
		what, c, c);
}

int yaml_input_begin(const char **text, size_t *len, struct spec_errors *e)
{
	int r;

	if (*len > SPEC_MAX_FILE)
		return spec_errors_add(e, -EFBIG, 0, 0, "",
				       "the file has %zu bytes; at most %u (1 MiB) are read", *len,
				       SPEC_MAX_FILE);
	r = refuse_encoding(*text, *len, e);
	if (r < 0)
		return r;
	if (*len >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
		*text += 3;
		*len -= 3;
	}
	return 0;
}

/*
 * %TAG names tags of its own, none of which is known here. It is refused before libyaml sees it:
 * there, many of them take time that grows with their square, and a long one is copied at each
 * use.
 */
static bool is_tag_directive(const unsigned char *s, size_t len)
{
	static const char word[] = "%TAG";

	return len >= strlen(word) && memcmp(s, word, strlen(word)) == 0;
}

int yaml_input_check(const char *text, size_t len, struct spec_errors *e)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;
	unsigned line = 1, column = 1;
	uint32_t c;
	size_t n;

	for (; s < end; s += n, column++) {
		if (column == 1 && is_tag_directive(s, (size_t)(end - s)))
			return spec_errors_add(e, -EINVAL, line, column, "",
					       "%%TAG is not supported; a line of text can't begin "
					       "with it either");
		n = spec_utf8_char(s, (size_t)(end - s), &c);
		if (n == 0)
			return spec_errors_add(e, -EINVAL, line, column, "",
					       "byte 0x%02x is not UTF-8; save the file as UTF-8",
					       *s);
		if (c == '\n' || (c == '\r' && (s + 1 == end || s[1] != '\n'))) {
			line++;
			column = 0;
		} else if (c != '\t' && c != '\r' && !yaml_input_is_printable(c)) {
			return refuse_char(c, line, column, e);
		}
	}
	return 0;
}

/* Is TEXT JSON in the strict sense? Then every backslash in it stands between double quotes. */
static int is_json(const char *text, size_t len, bool *ret)
{
	struct json_tokener *tok = json_tokener_new_ex(SPEC_MAX_DEPTH + 1);
	struct json_object *value;

	if (!tok)
		return -ENOMEM;
	json_tokener_set_flags(tok, JSON_TOKENER_STRICT);
	value = json_tokener_parse_ex(tok, text, (int)len);
	*ret = value && json_tokener_get_error(tok) == json_tokener_success;
	json_object_put(value);
	json_tokener_free(tok);
	return 0;
}

/* The value of four hexadecimal digits; UINT32_MAX: they are none. */
static uint32_t hex4(const char *s, const char *end)
{
	uint32_t ret = 0;

	if (end - s < 4)
		return UINT32_MAX;
	for (int i = 0; i < 4; i++) {
		int c = s[i] | 0x20;

		if (c >= '0' && c <= '9')
			ret = ret << 4 | (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			ret = ret << 4 | (uint32_t)(c - 'a' + 10);
		else
			return UINT32_MAX;
	}
	return ret;
}

/* If a surrogate pair begins at S ("\uD8xx\uDCxx", 12 bytes), its character, else 0. */
static uint32_t pair_at(const char *s, const char *end)
{
	uint32_t high, low;

	if (end - s < 12 || s[1] != 'u' || s[6] != '\\' || s[7] != 'u')
		return 0;
	high = hex4(s + 2, end);
	low = hex4(s + 8, end);
	if (high < 0xd800 || high > 0xdbff || low < 0xdc00 || low > 0xdfff)
		return 0;
	return 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
}

/* Does TEXT hold what JSON may and YAML may not: a surrogate pair, a character to be escaped? */
static bool needs_adapting(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;

	if (memmem(text, len, "\\ud", 3) || memmem(text, len, "\\uD", 3))
		return true;
	while (s < end) {
		uint32_t c;
		size_t n = spec_utf8_char(s, (size_t)(end - s), &c);

		if (n && c > ' ' && !yaml_input_is_printable(c))
			return true;
		s += n ? n : 1;
	}
	return false;
}

/* Copy one character or escape of JSON from S to OUT, as YAML; returns its length in S. */
static size_t adapt(const char *s, const char *end, FILE *out)
{
	uint32_t c = *s == '\\' ? pair_at(s, end) : 0;
	size_t n;

	if (c) {
		fprintf(out, "\\U%08x", c);
		return 12;
	}
	if (*s == '\\' && s + 1 < end) {
		/* its second character is never the beginning of another escape */
		fwrite(s, 1, 2, out);
		return 2;
	}
	n = spec_utf8_char((const unsigned char *)s, (size_t)(end - s), &c);
	if (n && c > ' ' && !yaml_input_is_printable(c))
		fprintf(out, "\\u%04x", c);
	else
		fwrite(s, 1, n ? n : 1, out);
	return n ? n : 1;
}

int yaml_input_from_json(const char *text, size_t len, char **ret, size_t *ret_len)
{
	const char *end = text + len, *s = text;
	bool json = false, bad;
	FILE *out;
	int r;

	*ret = NULL;
	while (s < end && (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n'))
		s++;
	if (s == end || (*s != '{' && *s != '[') || !needs_adapting(text, len))
		return 0;
	r = is_json(text, len, &json);
	if (r < 0 || !json)
		return r;
	out = open_memstream(ret, ret_len);
	if (!out)
		return -ENOMEM;
	for (s = text; s < end;)
		s += adapt(s, end, out);
	bad = ferror(out);
	if (fclose(out) == 0 && !bad)
		return 0;
	free(*ret);
	*ret = NULL;
	return -ENOMEM;
}
