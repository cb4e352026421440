/* SPDX-License-Identifier: MIT */
/* Base64, four characters for three bytes. */
#include "spec/base/base64.h"

#include "spec/base/mem.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* The value of C; 64 for anything else. */
static unsigned digit(char c)
{
	const char *at = c ? strchr(alphabet, c) : NULL;

	return at ? (unsigned)(at - alphabet) : 64;
}

/* Write the N - 1 bytes of a group of N characters; false: the last character holds bits beyond them. */
static bool decode_group(const unsigned v[4], size_t n, char **to)
{
	unsigned bits = v[0] << 18 | v[1] << 12 | v[2] << 6 | v[3];

	for (size_t i = 0; i + 1 < n; i++)
		*(*to)++ = (char)(bits >> (16 - 8 * i));
	return n == 4 || (bits << (8 * (n - 1)) & 0xffffff) == 0;
}

char *spec_base64_decode(const char *text, size_t len, size_t *ret_len)
{
	cleanup_free char *ret = mem_grow(NULL, len / 4 * 3 + 4, 1);
	char *to = ret;
	unsigned v[4] = {0};
	size_t n = 0, pad = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '\n' || text[i] == '\r')
			continue;
		if (text[i] == '=' && n + pad < 4 && n >= 2) {
			pad++;
			continue;
		}
		if (pad || digit(text[i]) == 64)
			return NULL;
		v[n++] = digit(text[i]);
		if (n == 4) {
			decode_group(v, n, &to);
			memset(v, 0, sizeof(v));
			n = 0;
		}
	}
	if (n + pad != 0 && (n + pad != 4 || !decode_group(v, n, &to)))
		return NULL;
	*to = '\0';
	*ret_len = (size_t)(to - ret);
	return take_ptr(ret);
}

char *spec_base64_encode(const void *data, size_t len)
{
	const unsigned char *from = data;
	char *ret = mem_grow(NULL, (len + 2) / 3 * 4 + 1, 1), *to = ret;

	for (size_t i = 0; i < len; i += 3) {
		size_t n = min_of(len - i, (size_t)3);
		unsigned bits = (unsigned)from[i] << 16 | (n > 1 ? (unsigned)from[i + 1] << 8 : 0) |
				(n > 2 ? from[i + 2] : 0);

		for (size_t j = 0; j < 4; j++)
			*to++ = j <= n ? alphabet[bits >> (18 - 6 * j) & 63] : '=';
	}
	*to = '\0';
	return ret;
}
