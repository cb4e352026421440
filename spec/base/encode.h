/* SPDX-License-Identifier: MIT */
/* Base64, percent-encoding, SHA-256 and FNV-1a. */
#pragma once

#include "spec/base/base.h"

/*
 * Decode base64 (RFC 4648), ignoring line breaks. Return the bytes, malloc'ed and followed by a
 * NUL; NULL if TEXT is not base64.
 */
char *spec_base64_decode(const char *text, size_t len, size_t *ret_len);
char *spec_base64_encode(const void *data, size_t len);

/* Percent-encode TEXT for a URL, except letters, digits and "-._~". Return it malloc'ed. */
char *spec_url_escape(const char *text);

/* Write the digest in lower-case hexadecimal. No library that kxfs uses has this function. */
void spec_sha256(const void *data, size_t len, char ret[65]);

#define SPEC_FNV1A_INIT UINT64_C(14695981039346656037)
/*
 * Return the hash of all bytes so far. HASH is the hash of the earlier bytes; SPEC_FNV1A_INIT if
 * DATA is the beginning. The hash detects damage, but not forgery.
 */
uint64_t spec_fnv1a(uint64_t hash, const void *data, size_t len);
