/* SPDX-License-Identifier: MIT */
/* Base64 with the standard alphabet and padding (RFC 4648), as in kubeconfig files and HTTP. */
#pragma once

#include "spec/base/base.h"

/*
 * Decode TEXT, malloc'ed (*RET_LEN bytes, and a NUL after them); line breaks in TEXT are ignored.
 * NULL if TEXT is not base64.
 */
char *spec_base64_decode(const char *text, size_t len, size_t *ret_len);

/* malloc'ed */
char *spec_base64_encode(const void *data, size_t len);
