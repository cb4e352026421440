/* SPDX-License-Identifier: MIT */
/*
 * Which style a string needs. Readers differ in what they take plain text for: YAML 1.1 has
 * many booleans, octal, binary and base-60 numbers and dates, 1.2 fewer; quoting one string too
 * many costs nothing, one too few changes a value, so this errs on the side of quotes.
 */
#include "spec/yaml_style.h"

#include <strings.h>

#include "spec/utf8.h"
#include "spec/yaml_input.h"

/* Words that some reader takes for null, a boolean, a number, or a special key. */
static bool is_word(const char *text, size_t len)
{
	static const char *const words[] = {"~",     "null", "true", "false", "yes",  "no",
					    "on",    "off",  "y",    "n",     ".inf", "-.inf",
					    "+.inf", ".nan", "=",    "<<",    "nan",  "inf"};

	for (size_t i = 0; i < array_size(words); i++) {
		if (strlen(words[i]) == len && strncasecmp(text, words[i], len) == 0)
			return true;
	}
	return false;
}

/* Could this be a number or a date in some notation: only their characters, and a digit? */
static bool is_numeric(const char *text, size_t len)
{
	bool digit = false, letter = false;

	if (!strchr("0123456789+-.", text[0]))
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!text[i] || !strchr("0123456789abcdefABCDEFxXoOtTzZ_.:+- ", text[i]))
			return false;
		digit |= text[i] >= '0' && text[i] <= '9';
		letter |= (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
	}
	return digit || !letter;
}

/* May plain text begin like this, and not be taken for syntax? */
static bool begins_plain(const char *text, size_t len)
{
	if (strchr("?:,[]{}#&*!|>'\"%@` ", text[0]))
		return false;
	if (len >= 3 && (strncmp(text, "---", 3) == 0 || strncmp(text, "...", 3) == 0))
		return false;
	return text[0] != '-' || (len > 1 && text[1] != ' ');
}

/* Is every character printable, those of EXTRA counted in? */
static bool is_printable(const char *text, size_t len, const char *extra)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;

	while (s < end) {
		uint32_t c;
		size_t n = spec_utf8_char(s, (size_t)(end - s), &c);

		if (n == 0 ||
		    (!yaml_input_is_printable(c) && (c == 0 || c > 0x7f || !strchr(extra, (int)c))))
			return false;
		s += n;
	}
	return true;
}

/* TEXT is printable and not empty. */
static bool is_plain(const char *text, size_t len, bool flow)
{
	if (!begins_plain(text, len) || text[len - 1] == ' ' || text[len - 1] == ':')
		return false;
	for (size_t i = 1; i < len; i++) {
		if ((text[i - 1] == ':' && text[i] == ' ') ||
		    (text[i - 1] == ' ' && text[i] == '#'))
			return false;
	}
	for (size_t i = 0; flow && i < len; i++) {
		if (strchr(",[]{}:?", text[i]))
			return false;
	}
	return !is_word(text, len) && !is_numeric(text, len);
}

enum yaml_style yaml_style_inline(const char *text, size_t len, bool flow)
{
	if (len == 0 || !is_printable(text, len, ""))
		return YAML_STYLE_DOUBLE;
	if (is_plain(text, len, flow))
		return YAML_STYLE_PLAIN;
	/* what would need escapes reads better without them */
	if (memchr(text, '"', len) || memchr(text, '\\', len))
		return YAML_STYLE_SINGLE;
	return YAML_STYLE_DOUBLE;
}

bool yaml_style_is_literal(const char *text, size_t len)
{
	bool content = false;

	if (!memchr(text, '\n', len) || !is_printable(text, len, "\n\t"))
		return false;
	for (size_t i = 0; i < len; i++)
		content |= text[i] != '\n' && text[i] != ' ' && text[i] != '\t';
	return content;
}
