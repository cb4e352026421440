/* SPDX-License-Identifier: MIT */
/* Base64, percent-encoding, SHA-256 (with the names of FIPS 180-4) and FNV-1a. */
#include "spec/base/encode.h"

#include "spec/base/mem.h"

/* --- base64 --- */

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Return the value of the digit C; 64 if C is not a digit. */
static unsigned base64_digit(char c)
{
	const char *at = c ? strchr(alphabet, c) : NULL;

	return at ? (unsigned)(at - alphabet) : 64;
}

/* Decode N digits to N - 1 bytes. Return false if unused bits of the last digit are not 0. */
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
		if (pad || base64_digit(text[i]) == 64)
			return NULL;
		v[n++] = base64_digit(text[i]);
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

/* --- URLs --- */

static bool unreserved(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("-._~", c));
}

char *spec_url_escape(const char *text)
{
	static const char hex[] = "0123456789ABCDEF";
	char *ret = new0_n(char, 3 * strlen(text) + 1);
	char *to = ret;

	for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
		if (unreserved(*p)) {
			*to++ = (char)*p;
			continue;
		}
		*to++ = '%';
		*to++ = hex[*p >> 4];
		*to++ = hex[*p & 15];
	}
	return ret;
}

/* --- SHA-256 --- */

static const uint32_t K[64] = {
	0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4,
	0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe,
	0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f,
	0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7,
	0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc,
	0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b,
	0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116,
	0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
	0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7,
	0xc67178f2,
};

static uint32_t rotr(uint32_t x, unsigned n)
{
	return x >> n | x << (32 - n);
}

static void block(uint32_t H[8], const unsigned char *data)
{
	uint32_t W[64], v[8];

	for (size_t t = 0; t < 16; t++)
		W[t] = (uint32_t)data[4 * t] << 24 | (uint32_t)data[4 * t + 1] << 16 |
		       (uint32_t)data[4 * t + 2] << 8 | data[4 * t + 3];
	for (size_t t = 16; t < 64; t++) {
		uint32_t a = W[t - 15], b = W[t - 2];

		W[t] = W[t - 16] + W[t - 7] + (rotr(a, 7) ^ rotr(a, 18) ^ a >> 3) +
		       (rotr(b, 17) ^ rotr(b, 19) ^ b >> 10);
	}
	memcpy(v, H, sizeof(v));
	for (size_t t = 0; t < 64; t++) {
		uint32_t a = v[0], e = v[4];
		uint32_t T1 = v[7] + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) +
			      ((e & v[5]) ^ (~e & v[6])) + K[t] + W[t];
		uint32_t T2 = (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) +
			      ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));

		memmove(v + 1, v, 7 * sizeof(v[0]));
		v[4] += T1;
		v[0] = T1 + T2;
	}
	for (size_t i = 0; i < 8; i++)
		H[i] += v[i];
}

void spec_sha256(const void *data, size_t len, char ret[65])
{
	uint32_t H[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
			 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
	const unsigned char *p = data;
	unsigned char last[128] = {0};
	size_t rest = len % 64, size = rest < 56 ? 64 : 128;

	for (size_t i = 0; i < len / 64; i++)
		block(H, p + 64 * i);
	if (rest > 0)
		memcpy(last, p + len - rest, rest);
	last[rest] = 0x80;
	for (size_t i = 0; i < 8; i++)
		last[size - 1 - i] = (unsigned char)((uint64_t)len * 8 >> 8 * i);
	for (size_t i = 0; i < size; i += 64)
		block(H, last + i);
	for (size_t i = 0; i < 8; i++)
		snprintf(ret + 8 * i, 9, "%08x", H[i]);
}

/* --- FNV-1a --- */

uint64_t spec_fnv1a(uint64_t hash, const void *data, size_t len)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < len; i++)
		hash = (hash ^ bytes[i]) * UINT64_C(1099511628211);
	return hash;
}
