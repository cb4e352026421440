/* SPDX-License-Identifier: MIT */
/*
 * What is wrong with a document, for the person who wrote it: a bounded list of errors with
 * position and path. Functions that read documents take a list and go on after an error, so
 * that all errors of a file are reported at once (at most SPEC_MAX_ERRORS; the rest is counted).
 */
#ifndef KXFS_SPEC_ERROR_H
#define KXFS_SPEC_ERROR_H

#include "spec/base.h"

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
	int err;	/* the errno of the worst: -EINVAL, -EFBIG (a bound) or -ENOMEM; 0: none */
};

#define SPEC_ERRORS_INIT ((struct spec_errors){0})

/* Release what E holds; E is empty afterwards. */
void spec_errors_clear(struct spec_errors *e);

/* Add one error. ERR is -EINVAL, -EFBIG or -ENOMEM. Returns ERR, for "return spec_errors_add(...)". */
int spec_errors_add(struct spec_errors *e, int err, unsigned line, unsigned column,
		    const char *path, const char *fmt, ...) printf_like(6, 7);

/*
 * The text for people, one error a line: "FILE:LINE:COLUMN: path: text\n" (parts that are not
 * known are left out), then a line that counts what was dropped. malloc'ed; NULL: no memory.
 */
char *spec_errors_text(const struct spec_errors *e, const char *file);

/*
 * The word of WORDS (NULL-terminated) nearest to WORD, for "did you mean"; NULL when none is
 * near: edit distance (with transpositions, ignoring case) at most 1 + length/4, or else the
 * first that holds WORD as a part ("replicas": "num_replicas").
 */
const char *spec_suggest(const char *word, const char *const *words);

#endif
