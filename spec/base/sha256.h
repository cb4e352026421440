/* SPDX-License-Identifier: MIT */
/*
 * SHA-256 (FIPS 180-4), for the annotation that replaces an AppDef too large for an annotation. It
 * only identifies a text, so speed does not matter, and none of kxfs's libraries provides it.
 */
#pragma once

#include "spec/base/base.h"

/* Write the digest of LEN bytes in lower-case hexadecimal. */
void spec_sha256(const void *data, size_t len, char ret[65]);
