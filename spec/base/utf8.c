/* SPDX-License-Identifier: MIT */
/*
 * Decodes UTF-8. Overlong forms, surrogates and numbers above U+10FFFF are invalid. At an invalid
 * sequence, spec_utf8_clean escapes only one byte, and continues decoding at the next byte.
 */
#include "spec/base/utf8.h"

#include "spec/base/mem.h"

size_t spec_utf8_char(const unsigned char *s, size_t len, uint32_t *ret)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n = s[0] < 0x80	 ? 1
		   : s[0] < 0xc2 ? 0
		   : s[0] < 0xe0 ? 2
		   : s[0] < 0xf0 ? 3
		   : s[0] < 0xf5 ? 4
				 : 0;
	uint32_t c;

	if (n == 0 || n > len)
		return 0;
	c = n == 1 ? s[0] : s[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (s[i] & 0x3f);
	}
	if (n > 1 && (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000)))
		return 0;
	*ret = c;
	return n;
}

int spec_utf8_hex4(const char *p)
{
	int ret = 0;

	for (int i = 0; i < 4; i++) {
		int c = p[i] | 0x20;
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
						   : -1;

		/* The bit operation above turns some control characters into digits. */
		if (digit < 0 || (unsigned char)p[i] < 0x20)
			return -1;
		ret = ret << 4 | digit;
	}
	return ret;
}

uint32_t spec_utf8_pair(int high, int low)
{
	if (high < 0xd800 || high > 0xdbff || low < 0xdc00 || low > 0xdfff)
		return 0;
	return 0x10000 + ((uint32_t)(high - 0xd800) << 10 | (uint32_t)(low - 0xdc00));
}

bool spec_utf8_is(const char *text, size_t len)
{
	const unsigned char *s = (const unsigned char *)text, *end = s + len;
	uint32_t c;
	size_t n = 1;

	for (; n && s < end; s += n)
		n = spec_utf8_char(s, (size_t)(end - s), &c);
	return n > 0;
}

static bool is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

/*
 * Return the length of the character at S; 0 if it is invalid. *RET_CLEAN is true if the character
 * is valid and needs no escape.
 */
static size_t read_char(const unsigned char *s, const char *keep, bool *ret_clean)
{
	uint32_t c;
	size_t n = spec_utf8_char(s, strnlen((const char *)s, 4), &c);

	*ret_clean = n > 0 && (!is_control(c) || (c < 0x80 && strchr(keep, (int)c)));
	return n;
}

bool spec_utf8_is_clean(const char *text, const char *keep)
{
	bool clean = true;

	while (clean && *text)
		text += read_char((const unsigned char *)text, keep, &clean);
	return clean;
}

char *spec_utf8_clean(char *to, const char *text, const char *keep)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *s = (const unsigned char *)text;

	while (*s) {
		bool clean;
		size_t n = read_char(s, keep, &clean);
		unsigned char c;

		if (clean) {
			memcpy(to, s, n);
			to += n;
			s += n;
			continue;
		}
		s += max_of(n, (size_t)1);
		c = s[-1];
		*to++ = '\\';
		if (c == '\n' || c == '\t' || c == '\r') {
			*to++ = c == '\n' ? 'n' : c == '\t' ? 't' : 'r';
		} else {
			*to++ = 'x';
			*to++ = hex[c >> 4];
			*to++ = hex[c & 15];
		}
	}
	*to = '\0';
	return to;
}

char *spec_utf8_clean_copy(const char *text, const char *keep)
{
	char *ret = new0_n(char, 4 * strlen(text) + 1);

	spec_utf8_clean(ret, text, keep);
	return ret;
}

char *spec_utf8_field(const char *text)
{
	cleanup_free char *doubled = new0_n(char, 2 * strlen(text) + 1);

	for (char *to = doubled; *text; text++) {
		if (*text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	return spec_utf8_clean_copy(doubled, "");
}
