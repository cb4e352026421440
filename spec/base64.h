/* SPDX-License-Identifier: MIT */
/* Base64 with the standard alphabet and padding (RFC 4648), as kubeconfig files and HTTP use it. */
#ifndef KXFS_SPEC_BASE64_H
#define KXFS_SPEC_BASE64_H

#include "spec/base.h"

/*
 * What TEXT stands for, NUL-terminated behind *RET_LEN bytes, malloc'ed; line breaks in TEXT are
 * ignored. NULL with errno: EINVAL (it is no base64) or ENOMEM.
 */
char *spec_base64_decode(const char *text, size_t len, size_t *ret_len);

/* malloc'ed; NULL: no memory. */
char *spec_base64_encode(const void *data, size_t len);

#endif
