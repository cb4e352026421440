/* SPDX-License-Identifier: MIT */
/*
 * Fields of tab-separated lines (the files changes and events): tabs, newlines, backslashes and control
 * characters are written as escapes, so that no field ends its line or moves a terminal's cursor.
 */
#pragma once

#include "spec/base/mem.h"
#include "spec/base/utf8.h"

/* Return TEXT as one field of a line, malloc'ed. */
static inline char *spec_line_field(const char *text)
{
	cleanup_free char *doubled = new0_n(char, 2 * strlen(text) + 1);

	for (char *to = doubled; *text; text++) {
		if (*text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	return spec_utf8_clean_copy(doubled, "");
}
