/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a document, for the person who wrote it: a bounded list of errors with
 * position and path. Functions that read documents take a list and go on after an error, so
 * that all errors of a file are reported at once (at most SPEC_MAX_ERRORS; further ones are counted).
 */
#pragma once

#include "spec/base/base.h"

struct spec_error {
	unsigned line;	 /* from 1; 0: the error has no position */
	unsigned column; /* from 1, in characters */
	char *path;	 /* "roles[0].args[2]"; "" for the whole document */
	char *text;	 /* what is wrong and, where known, what to do */
};

struct spec_errors {
	struct spec_error *v;
	size_t n;
	size_t dropped; /* errors beyond SPEC_MAX_ERRORS */
	/* The errno of the worst error: -EFBIG (a bound) or -EINVAL; 0: there is none. */
	int err;
};

#define SPEC_ERRORS_INIT ((struct spec_errors){0})

/* Release what E holds; E is empty afterwards. */
void spec_errors_clear(struct spec_errors *e);

/* Count an error without a text, as spec_errors_add does when there is no room for more. */
void spec_errors_drop(struct spec_errors *e);

/*
 * Add one error, which counts once however often it is added. ERR is -EINVAL or -EFBIG. Returns ERR, for
 * "return spec_errors_add(...)".
 */
int spec_errors_add(struct spec_errors *e, int err, unsigned line, unsigned column,
		    const char *path, const char *fmt, ...) printf_like(6, 7);

/*
 * Ask FIND for the position of each error that has none, by its path (it returns false: not known). The errors are in
 * the order of the document afterwards.
 */
typedef bool (*spec_errors_find)(void *data, const char *path, unsigned *ret_line,
				 unsigned *ret_column);
void spec_errors_locate(struct spec_errors *e, spec_errors_find find, void *data);

/*
 * The text of E for people, one error a line: "FILE:LINE:COLUMN: path: text\n" (parts that are not known are left out),
 * then a line that counts the errors that were dropped. malloc'ed.
 */
char *spec_errors_text(const struct spec_errors *e, const char *file);

/* How KEY of a map is added to the path of an error, as ".KEY" or ["KEY"]; without a dot if it is the FIRST step. */
void spec_errors_key(FILE *out, const char *key, bool first);

/*
 * The word of WORDS (NULL-terminated) that is nearest to WORD, for "did you mean"; NULL: none is near. Near is an edit
 * distance (with transpositions, ignoring case) of at most 1 + length/4; or else the first that has WORD as a part
 * ("replicas": "num_replicas").
 */
const char *spec_suggest(const char *word, const char *const *words);
