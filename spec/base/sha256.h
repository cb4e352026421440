/* SPDX-License-Identifier: MIT */
/*
 * SHA-256 (FIPS 180-4), for the annotation that stands for an AppDef which is too large to be one
 * itself. It only names a text, so speed does not matter, and no library that kxfs needs anyway has it.
 */
#pragma once

#include "spec/base/base.h"

/* The digest of LEN bytes in lower-case hexadecimal. */
void spec_sha256(const void *data, size_t len, char ret[65]);
