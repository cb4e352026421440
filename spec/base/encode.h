/* SPDX-License-Identifier: MIT */
/* Encodes bytes (base64, percent-encoding of URLs) and hashes them (SHA-256, FNV-1a). */
#pragma once

#include "spec/base/base.h"

/*
 * Decode base64 (RFC 4648: the standard alphabet, with padding), ignoring line breaks. Return
 * *RET_LEN bytes followed by a NUL, malloc'ed; NULL if TEXT is not base64.
 */
char *spec_base64_decode(const char *text, size_t len, size_t *ret_len);
/* Return DATA in base64, malloc'ed. */
char *spec_base64_encode(const void *data, size_t len);

/*
 * Percent-encode TEXT for the query or the path of a URL. Only letters, digits and "-._~" are not
 * encoded. Return the result, malloc'ed.
 */
char *spec_url_escape(const char *text);

/*
 * Write the SHA-256 digest (FIPS 180-4) of LEN bytes in lower-case hexadecimal. kxfs has its own
 * implementation because none of its libraries has one. Speed does not matter, since kxfs only
 * hashes texts to identify them.
 */
void spec_sha256(const void *data, size_t len, char ret[65]);

#define SPEC_FNV1A_INIT UINT64_C(14695981039346656037)
/*
 * Return the 64-bit FNV-1a hash of LEN bytes at DATA. To hash several chunks as one text, pass the
 * hash of all earlier chunks as HASH. For the first chunk, pass SPEC_FNV1A_INIT. This hash is fast.
 * It detects damage, but not forgery.
 */
uint64_t spec_fnv1a(uint64_t hash, const void *data, size_t len);
