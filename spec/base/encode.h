/* SPDX-License-Identifier: MIT */
/* Bytes as text: base64, the percent-encoding of URLs, and SHA-256. */
#pragma once

#include "spec/base/base.h"

/*
 * Decode TEXT (RFC 4648: the standard alphabet, with padding), malloc'ed (*RET_LEN bytes, and a
 * NUL after them); line breaks in TEXT are ignored. NULL if TEXT is not base64.
 */
char *spec_base64_decode(const char *text, size_t len, size_t *ret_len);
/* malloc'ed */
char *spec_base64_encode(const void *data, size_t len);

/*
 * Return TEXT with all but letters, digits and "-._~" percent-encoded, for the query or the path
 * of a URL. malloc'ed.
 */
char *spec_url_escape(const char *text);

/*
 * Write the digest of LEN bytes (FIPS 180-4) in lower-case hexadecimal. It only identifies a text,
 * so speed does not matter, and none of kxfs's libraries provides it.
 */
void spec_sha256(const void *data, size_t len, char ret[65]);
