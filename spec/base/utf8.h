/* SPDX-License-Identifier: MIT */
/*
 * Characters in bytes from outside, and texts that are safe on a terminal and in formats that
 * require UTF-8: text from a server, a plugin or a file passes through here before it is shown.
 */
#pragma once

#include "spec/base/base.h"

/*
 * Decode the first character of S, which has at least 1 byte. Return its length in bytes; 0 if S
 * does not begin with valid UTF-8.
 */
size_t spec_utf8_char(const unsigned char *s, size_t len, uint32_t *ret);

/* Return the number that the four hexadecimal digits at P make; -1 if P has no four such digits. */
int spec_utf8_hex4(const char *p);
/* Return the character of a surrogate pair; 0 if HIGH and LOW are not a pair. */
uint32_t spec_utf8_pair(int high, int low);

/* True if TEXT, of LEN bytes, is UTF-8. */
bool spec_utf8_is(const char *text, size_t len);

/* True if TEXT is UTF-8 without control characters (C0, DEL, C1) other than those in KEEP. */
bool spec_utf8_is_clean(const char *text, const char *keep);

/*
 * Copy TEXT to TO, which has 4 bytes for each of TEXT's and a NUL. Escape control characters other
 * than those in KEEP, and bytes that are not UTF-8 ("\n", "\x1b"). Return the end, as stpcpy does.
 */
char *spec_utf8_clean(char *to, const char *text, const char *keep);

/* spec_utf8_clean into a malloc'ed copy. */
char *spec_utf8_clean_copy(const char *text, const char *keep);

/*
 * Return TEXT as one field of a tab-separated line (the files changes and events), malloc'ed: backslashes are doubled,
 * and control characters escaped, so that no field ends its line or moves a terminal's cursor.
 */
char *spec_utf8_field(const char *text);
