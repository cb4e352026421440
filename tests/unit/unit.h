/* SPDX-License-Identifier: MIT */
/* cmocka, after the headers that it requires; a comparison of messages; and JSON without escapes. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/*
 * Assert that GOT has the lines of WANT. A line of WANT that ends with "..." may go on in GOT:
 * tests/golden/messages.txt has the complete sentences.
 */
static inline void assert_messages(const char *got, const char *want)
{
	const char *g = got, *w = want;

	while (*g && *w) {
		size_t of_got = strcspn(g, "\n"), of_want = strcspn(w, "\n");
		bool open = of_want >= 3 && strncmp(w + of_want - 3, "...", 3) == 0;
		size_t n = open ? of_want - 3 : of_want;

		if ((open ? of_got < n : of_got != n) || strncmp(g, w, n) != 0)
			break;
		g += of_got + (g[of_got] == '\n');
		w += of_want + (w[of_want] == '\n');
	}
	if (*g || *w)
		fail_msg("\"%s\", not \"%s\"", got, want);
}

/* Replace each ' by " in TEXT, so that a test can have JSON without escapes. Return TEXT. */
static inline char *unit_json(char *text)
{
	for (char *c = text; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	return text;
}
