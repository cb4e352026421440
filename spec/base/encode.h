/* SPDX-License-Identifier: MIT */
/* Base64, percent-encoding, SHA-256 and FNV-1a. */
#pragma once

#include "spec/base/base.h"

/*
 * Decode base64 (RFC 4648), ignoring line breaks. malloc'ed, with a NUL after the bytes; NULL if
 * TEXT is not base64.
 */
char *spec_base64_decode(const char *text, size_t len, size_t *ret_len);
char *spec_base64_encode(const void *data, size_t len);

/* Percent-encode all characters but letters, digits and "-._~" for a URL. malloc'ed. */
char *spec_url_escape(const char *text);

/* Write the digest in lower-case hexadecimal. None of kxfs's libraries has this function. */
void spec_sha256(const void *data, size_t len, char ret[65]);

#define SPEC_FNV1A_INIT UINT64_C(14695981039346656037)
/* HASH is SPEC_FNV1A_INIT, or the hash of all earlier bytes. Detects damage, not forgery. */
uint64_t spec_fnv1a(uint64_t hash, const void *data, size_t len);
