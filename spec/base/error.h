/* SPDX-License-Identifier: MIT */
/*
 * The errors in a document, with texts for the user who wrote it. Functions that read documents
 * continue after an error, so that kxfs reports all errors together.
 */
#pragma once

#include "spec/base/base.h"

struct spec_error {
	unsigned line;	 /* from 1; 0 if unknown */
	unsigned column; /* from 1, in characters */
	char *path;	 /* "roles[0].args[2]"; "" for the whole document */
	char *text;	 /* with the remedy, if known */
};

struct spec_errors {
	struct spec_error *v;
	size_t n;
	size_t dropped; /* number of errors that are not in V */
	/*
	 * 0 if there is no error; -EFBIG if any error is -EFBIG (the document exceeds a bound);
	 * otherwise -EINVAL.
	 */
	int err;
};

#define SPEC_ERRORS_INIT ((struct spec_errors){0})

void spec_errors_clear(struct spec_errors *e);

/*
 * Add an error, unless the list has an equal one. ERR is -EINVAL or -EFBIG. Return ERR. If the list
 * already has SPEC_MAX_ERRORS errors, only increase DROPPED.
 */
int spec_errors_add(struct spec_errors *e, int err, unsigned line, unsigned column,
		    const char *path, const char *fmt, ...) printf_like(6, 7);

/*
 * Call FIND for each error without a position, and set the position that it returns. Then sort the
 * errors. FIND returns false if it can't find PATH.
 */
typedef bool (*spec_errors_find)(void *data, const char *path, unsigned *ret_line,
				 unsigned *ret_column);
void spec_errors_locate(struct spec_errors *e, spec_errors_find find, void *data);

/*
 * Return a text for the user, malloc'ed. It has a line "FILE:LINE:COLUMN: path: text" for each
 * error; unknown parts are left out. A last line has the number of dropped errors, if any.
 */
char *spec_errors_text(const struct spec_errors *e, const char *file);

/*
 * Print KEY as a step of an error's path: .KEY, or ["KEY"] if KEY has unusual characters. If FIRST
 * is true, omit the dot.
 */
void spec_errors_key(FILE *out, const char *key, bool first);

/*
 * Return the word in WORDS that is most similar to WORD. Its edit distance must be at most 1 +
 * length/4. If there is no such word, return the first word that contains WORD; else NULL. WORDS
 * ends with NULL.
 */
const char *spec_suggest(const char *word, const char *const *words);
/*
 * Return "; did you mean X?" with the result X of spec_suggest; a copy of OTHERWISE if it is NULL.
 * malloc'ed.
 */
char *spec_suggestion(const char *word, const char *const *words, const char *otherwise);
