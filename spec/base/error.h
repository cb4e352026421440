/* SPDX-License-Identifier: MIT */
/*
 * The errors in a document, with position and path, for the person who wrote the document.
 * Functions that read documents receive this list and continue after an error, so that kxfs reports
 * all errors of a file together. The list has at most SPEC_MAX_ERRORS errors. Further errors are
 * only counted.
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
	size_t dropped; /* number of errors that are not in V */
	/*
	 * 0 if there is no error; -EFBIG if at least one error is -EFBIG (a bound was exceeded);
	 * otherwise -EINVAL.
	 */
	int err;
};

#define SPEC_ERRORS_INIT ((struct spec_errors){0})

/* Release what E owns; E is empty afterwards. */
void spec_errors_clear(struct spec_errors *e);

/* Only count an error, as spec_errors_add does when the list is full. */
void spec_errors_drop(struct spec_errors *e);

/*
 * Add one error, unless an equal one is already in the list. ERR is -EINVAL or -EFBIG. Return ERR,
 * so that a caller can write "return spec_errors_add(...)".
 */
int spec_errors_add(struct spec_errors *e, int err, unsigned line, unsigned column,
		    const char *path, const char *fmt, ...) printf_like(6, 7);

/*
 * Set the position of each error that has none, then sort the errors. FIND gets the error's path.
 * It sets the line and column of PATH, or returns false if it does not know PATH.
 */
typedef bool (*spec_errors_find)(void *data, const char *path, unsigned *ret_line,
				 unsigned *ret_column);
void spec_errors_locate(struct spec_errors *e, spec_errors_find find, void *data);

/*
 * Return the errors as text for people, malloc'ed: for each error a line "FILE:LINE:COLUMN: path:
 * text" without unknown parts, then a line with the number of dropped errors, if any.
 */
char *spec_errors_text(const struct spec_errors *e, const char *file);

/*
 * Print one step of an error's path. KEY is the key of a map. The step is .KEY, or ["KEY"] if KEY
 * is not a plain word. If FIRST is true, KEY is the first step of the path, so omit the dot.
 */
void spec_errors_key(FILE *out, const char *key, bool first);

/*
 * WORDS ends with NULL. Return the word in WORDS that is most similar to WORD, for "did you mean".
 * The edit distance (ignoring case, with transpositions) must be at most 1 + length/4. If no word
 * is similar enough, return the first word that contains WORD ("replicas": "num_replicas"), or
 * NULL.
 */
const char *spec_suggest(const char *word, const char *const *words);
/* Return "; did you mean X?" with the result of spec_suggest, else OTHERWISE. malloc'ed. */
char *spec_suggestion(const char *word, const char *const *words, const char *otherwise);
