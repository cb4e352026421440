/* SPDX-License-Identifier: MIT */
/*
 * Decodes UTF-8 from outside, and makes texts safe for terminals and for formats that require
 * UTF-8. All text from a server, a plugin or a file passes through these functions before a user
 * sees it.
 */
#pragma once

#include "spec/base/base.h"

/*
 * Decode the first character of the LEN bytes at S; LEN must be at least 1. Return the character's
 * length in bytes; 0 if S does not begin with valid UTF-8.
 */
size_t spec_utf8_char(const unsigned char *s, size_t len, uint32_t *ret);

/* Return the number in the four hexadecimal digits at P; -1 if one of them is not such a digit. */
int spec_utf8_hex4(const char *p);
/* Return the character that HIGH and LOW encode together; 0 if they are not a surrogate pair. */
uint32_t spec_utf8_pair(int high, int low);

/* True if the LEN bytes at TEXT are valid UTF-8. */
bool spec_utf8_is(const char *text, size_t len);

/* True if TEXT is valid UTF-8, and has no control characters (C0, DEL, C1) except those in KEEP. */
bool spec_utf8_is_clean(const char *text, const char *keep);

/*
 * Copy TEXT to TO. Write two things as escapes such as "\n" and "\x1b": bytes that are not valid
 * UTF-8, and control characters that are not in KEEP. TO must have space for 4 * strlen(TEXT) + 1
 * bytes. Return the end of the copy, as stpcpy does.
 */
char *spec_utf8_clean(char *to, const char *text, const char *keep);

/* Like spec_utf8_clean, but return a malloc'ed copy of TEXT. */
char *spec_utf8_clean_copy(const char *text, const char *keep);

/*
 * Return TEXT as a field of a tab-separated line in the files changes and events, malloc'ed. Double
 * its backslashes and escape its control characters, so that a field can't end its line or move a
 * terminal's cursor.
 */
char *spec_utf8_field(const char *text);
