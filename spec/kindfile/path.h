/* SPDX-License-Identifier: MIT */
/*
 * Values in a kind file: a path into an object, a label, an annotation, the number at the end of
 * the object's name, the key of a map, or a constant. Private to spec/kindfile.
 */
#pragma once

#include "spec/base/value.h"

/* Allocations that are freed together. Zeroed if empty. */
struct arena {
	void **v;
	size_t n;
};

/* Make ARENA the owner of P, which is malloc'ed. Return P. */
void *arena_own(struct arena *arena, void *p);
void arena_clear(struct arena *arena);

/* A value. Plain data; an arena owns its texts. Zeroed if the kind file does not set it. */
struct value {
	enum { FROM_CONSTANT, FROM_PATH, FROM_KEY, FROM_NAME } from;
	const char *text; /* as written in the kind file */
	/*
	 * STEPS has the keys of a path, each with its NUL. LAST is the last of these keys. Labels
	 * and annotations are paths, too.
	 */
	const char *steps, *last;
};

/* Alternative values. kxfs uses the first one that an object has. */
struct values {
	struct value *v;
	size_t n;
};

/* Parse TEXT into *RET. Return NULL, or the error (malloc'ed). */
char *value_parse(struct arena *arena, const char *text, struct value *ret);

/* Return what is at the path V in OBJECT (borrowed); NULL if absent or null. */
const struct spec_value *value_at(const struct value *v, const struct spec_value *object);
/* Return the time at the path V in OBJECT, or 0. */
int64_t value_time(const struct value *v, const struct spec_value *object);
/* Return the text of V in OBJECT, borrowed, or "". Numbers and booleans are as written. */
const char *value_text(const struct value *v, const struct spec_value *object);
/* Return the text of the first of V that OBJECT has, or "". */
const char *values_text(const struct values *v, const struct spec_value *object);
/* Return the first of V that is a number from 0 to INT32_MAX in OBJECT, else NONE. */
int values_number(const struct values *v, const struct spec_value *object, int none);
