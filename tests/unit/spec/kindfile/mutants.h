/* SPDX-License-Identifier: MIT */
/*
 * Mistakes that somebody could make in the states of a shipped kind file. Tests check that each
 * mistake makes a difference.
 */
#pragma once

#include "spec/base/mem.h"
#include "spec/kinds/kinds.h"
#include "tests/unit/unit.h"

/*
 * Return the start of row I of the list "states" in the kind file TEXT, or the end of the list if
 * there are fewer rows.
 */
static inline const char *row_of(const char *text, size_t i)
{
	const char *at = strstr(text, "\nstates:\n");

	assert_non_null(at);
	at += strlen("\nstates:\n");
	while (strchr("-# ", *at)) {
		if (*at == '-' && i-- == 0)
			return at;
		at = strchr(at, '\n') + 1;
	}
	return at;
}

/* Return the text of the shipped kind NAME. */
static inline const char *shipped(const char *name)
{
	for (const struct spec_shipped_kind *s = spec_shipped_kinds; s->name; s++)
		if (streq(s->name, name))
			return s->text;
	fail_msg("no kind %s", name);
	return NULL;
}

/*
 * True if the rows at A and B may match the same object, so that their order matters. B ends at
 * END.
 */
static inline bool is_ordered(const char *a, const char *b, const char *end)
{
	const char *phase = strstr(a, "phase: "), *word;
	size_t len;

	if (phase > b || !phase)
		return *end != '-' || !strstr(a, "condition: ") || strstr(a, "condition: ") > b;
	word = phase + strlen("phase: ");
	word += *word == '[';
	len = strcspn(word, ",]}");
	for (const char *at = b; at + len < end; at++)
		if (strncmp(at, word, len) == 0 && strchr(" [", at[-1]) && strchr(",]}", at[len]))
			return true;
	return false;
}

/* Return the list of states in the text of a kind. */
static inline char *states_of(const char *text)
{
	const char *begin = row_of(text, 0);

	return mem_copy(begin, (size_t)(row_of(text, SIZE_MAX) - begin));
}

/*
 * Call FN for each mutant of TEXT: without one row of its states, with two rows swapped that may
 * match the same object, and with another "first". WHAT describes the mutation.
 */
static inline void each_mutant(const char *text,
			       void (*fn)(void *data, const char *mutant, const char *what),
			       void *data)
{
	const char *first = strstr(text, "first: "), *row, *next, *after;

	for (size_t k = 0; *(row = row_of(text, k)) == '-'; k++) {
		cleanup_free char *dropped = NULL, *swapped = NULL;
		cleanup_free char *what =
			text_print("states[%zu]: %.*s", k, (int)strcspn(row, "\n"), row);

		next = row_of(text, k + 1);
		after = row_of(text, k + 2);
		dropped = text_print("%.*s%s", (int)(row - text), text, next);
		fn(data, dropped, what);
		if (*next != '-' || !is_ordered(row, next, after))
			continue;
		swapped = text_print("%.*s%.*s%.*s%s", (int)(row - text), text, (int)(after - next),
				     next, (int)(next - row), row, after);
		fn(data, swapped, what);
	}
	if (first) {
		cleanup_free char *off = text_print("%.*sfirst: 2%s", (int)(first - text), text,
						    first + strlen("first: 1"));

		fn(data, off, "first");
	}
}
