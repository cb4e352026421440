/* SPDX-License-Identifier: MIT */
/*
 * Characters in bytes from outside, and texts that are safe on a terminal and in formats that want
 * UTF-8: text from a server, a plugin or a file goes through here before it is shown.
 */
#pragma once

#include "spec/base/base.h"

/*
 * Decode one character of valid or invalid UTF-8 (at least 1 byte); returns its length in
 * bytes, 0 if the bytes are not UTF-8.
 */
size_t spec_utf8_char(const unsigned char *s, size_t len, uint32_t *ret);

/* The number of the four hexadecimal digits at P; -1: these are not four such digits. */
int spec_utf8_hex4(const char *p);
/* The character of a pair of surrogates; 0: HIGH and LOW are no pair. */
uint32_t spec_utf8_pair(int high, int low);

/* Is TEXT, of LEN bytes, UTF-8? */
bool spec_utf8_is(const char *text, size_t len);

/* Is TEXT UTF-8 without control characters (C0, DEL, C1) other than those in KEEP? */
bool spec_utf8_is_clean(const char *text, const char *keep);

/*
 * Copy TEXT to TO, which has room for 4 bytes of each of TEXT's and a NUL; control characters other
 * than those in KEEP, and bytes that are no UTF-8, become escapes ("\n", "\x1b"). Returns the end, as
 * stpcpy does.
 */
char *spec_utf8_clean(char *to, const char *text, const char *keep);

/* spec_utf8_clean into a malloc'ed copy. */
char *spec_utf8_clean_copy(const char *text, const char *keep);
