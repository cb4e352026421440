/* SPDX-License-Identifier: MIT */
/*
 * Fields of tab-separated lines (changes, events): tabs, newlines, backslashes and all that a terminal
 * may obey are written as escapes, so that a line is a line.
 */
#ifndef KXFS_SPEC_LINE_H
#define KXFS_SPEC_LINE_H

#include "spec/utf8.h"

/* TEXT as one field: clean, backslashes doubled. malloc'ed; NULL: no memory. */
static inline char *spec_line_field(const char *text)
{
	cleanup_free char *doubled = calloc(2, strlen(text) + 1);
	char *to = doubled;

	for (; to && *text; text++) {
		if (*text == '\\')
			*to++ = '\\';
		*to++ = *text;
	}
	return doubled ? spec_utf8_clean_copy(doubled, "") : NULL;
}

#endif
