/* SPDX-License-Identifier: MIT */
/*
 * The errors in a document, for the person who wrote it: a bounded list with position and path.
 * Functions that read documents take a list and continue after an error, so that all errors of a
 * file are reported together (at most SPEC_MAX_ERRORS; further ones are counted).
 */
#pragma once

#include "spec/base/base.h"

struct spec_error {
	unsigned line;	 /* from 1; 0 if unknown */
	unsigned column; /* from 1, in characters */
	char *path;	 /* "roles[0].args[2]"; "" for the whole document */
	char *text;	 /* the error and, if known, its remedy */
};

struct spec_errors {
	struct spec_error *v;
	size_t n;
	size_t dropped; /* errors beyond SPEC_MAX_ERRORS */
	/* The errno of the worst error: -EFBIG (a bound) or -EINVAL; 0 if there is none. */
	int err;
};

#define SPEC_ERRORS_INIT ((struct spec_errors){0})

/* Release what E owns; E is empty afterwards. */
void spec_errors_clear(struct spec_errors *e);

/* Count an error without a text, as spec_errors_add does when the list is full. */
void spec_errors_drop(struct spec_errors *e);

/*
 * Add one error, unless the list has it already. ERR is -EINVAL or -EFBIG. Return ERR, for "return
 * spec_errors_add(...)".
 */
int spec_errors_add(struct spec_errors *e, int err, unsigned line, unsigned column,
		    const char *path, const char *fmt, ...) printf_like(6, 7);

/*
 * Set the position of each error that has none: FIND returns the position of the error's path, or
 * false if it does not know the path. Then sort the errors by position.
 */
typedef bool (*spec_errors_find)(void *data, const char *path, unsigned *ret_line,
				 unsigned *ret_column);
void spec_errors_locate(struct spec_errors *e, spec_errors_find find, void *data);

/*
 * Return the text of E for people, one error a line: "FILE:LINE:COLUMN: path: text\n" (without
 * unknown parts), then a line that counts the dropped errors. malloc'ed.
 */
char *spec_errors_text(const struct spec_errors *e, const char *file);

/*
 * Print the map key KEY as a step of an error's path: .KEY, or ["KEY"] if it is not a plain word.
 * Omit the dot if KEY is the FIRST step.
 */
void spec_errors_key(FILE *out, const char *key, bool first);

/*
 * Return the word of WORDS (NULL-terminated) that is nearest to WORD, for "did you mean". A word is
 * near if its edit distance (with transpositions, ignoring case) is at most 1 + length/4. If no
 * word is near, return the first one that contains WORD ("replicas": "num_replicas"), or NULL.
 */
const char *spec_suggest(const char *word, const char *const *words);
