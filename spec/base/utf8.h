/* SPDX-License-Identifier: MIT */
/*
 * Decodes untrusted UTF-8, and makes texts safe for terminals. All text from a server, a plugin or
 * a file passes through these functions before a user sees it.
 */
#pragma once

#include "spec/base/base.h"

/*
 * Decode the first character of the LEN bytes at S; LEN must not be 0. Return the character's
 * length in bytes; 0 if it is invalid.
 */
size_t spec_utf8_char(const unsigned char *s, size_t len, uint32_t *ret);

/* Return the number in the four hexadecimal digits at P; -1 if one of them is not such a digit. */
int spec_utf8_hex4(const char *p);
/* Return the character that a surrogate pair encodes; 0 if HIGH and LOW are not a pair. */
uint32_t spec_utf8_pair(int high, int low);

bool spec_utf8_is(const char *text, size_t len);

/* True if TEXT is valid UTF-8 without control characters (C0, DEL, C1) except those in KEEP. */
bool spec_utf8_is_clean(const char *text, const char *keep);

/*
 * Copy TEXT to TO. Escape invalid UTF-8, and control characters that are not in KEEP, as in "\n"
 * and "\x1b". TO needs 4 * strlen(TEXT) + 1 bytes. Return the end of the copy, as stpcpy does.
 */
char *spec_utf8_clean(char *to, const char *text, const char *keep);

/* Like spec_utf8_clean, but return a malloc'ed copy. */
char *spec_utf8_clean_copy(const char *text, const char *keep);

/*
 * Return TEXT as a field of a tab-separated line, malloc'ed. Escape backslashes, control characters
 * and invalid UTF-8.
 */
char *spec_utf8_field(const char *text);
