/* SPDX-License-Identifier: MIT */
/*
 * Values in a kind file. A value is one of these: a path into an object, a label, an annotation,
 * the number at the end of the object's name, the key of a map, or a constant. Private to
 * spec/kindfile.
 */
#pragma once

#include "spec/base/value.h"

/* Allocations that are freed together. An arena with only zeros is empty. */
struct arena {
	void **v;
	size_t n;
};

/* Make ARENA the owner of P, which is malloc'ed, and return P. */
void *arena_own(struct arena *arena, void *p);
void arena_clear(struct arena *arena);

/*
 * A value in a kind file. Plain data. An arena owns the texts to which the members point. If the
 * kind file does not set the value, all members are zero, and no object has the value.
 */
struct value {
	enum { FROM_CONSTANT, FROM_PATH, FROM_KEY, FROM_NAME } from;
	const char *text; /* as written in the kind file */
	/*
	 * For a path: STEPS has the keys of the path, each terminated by a NUL, and LAST is the
	 * last key. An empty key means each item of a list ([*]). A label or an annotation is also
	 * a path.
	 */
	const char *steps, *last;
	bool many; /* true if the path has a [*] */
};

/* A list of alternatives. kxfs uses the first value in the list that an object has. */
struct values {
	struct value *v;
	size_t n;
};

/* Parse TEXT into *RET. Return NULL. If TEXT is not a value, return the error, malloc'ed. */
char *value_parse(struct arena *arena, const char *text, struct value *ret);

/*
 * Return the value at the path V in OBJECT, borrowed. V must not have a [*]. Return NULL if the
 * value is absent or null, or V is not a path.
 */
const struct spec_value *value_at(const struct value *v, const struct spec_value *object);
/* Return the time at the path V in OBJECT (spec_read_time); 0 if no valid time is there. */
int64_t value_time(const struct value *v, const struct spec_value *object);
/*
 * Return the text of V in OBJECT, borrowed; "" if OBJECT does not have V. For a number or a
 * boolean, the text is as written in OBJECT.
 */
const char *value_text(const struct value *v, const struct spec_value *object);
/* Return the text of the first of the values V that OBJECT has; "" if it has none of them. */
const char *values_text(const struct values *v, const struct spec_value *object);
/*
 * Find the first of the values V that is a number in OBJECT, and return it; NONE if there is none.
 * Only numbers from 0 to INT32_MAX count.
 */
int values_number(const struct values *v, const struct spec_value *object, int none);
/*
 * Return the largest number at V in OBJECT; NONE if OBJECT does not have V. If V has a [*], a list
 * item without a number counts as EACH.
 */
int value_largest(const struct value *v, const struct spec_value *object, int each, int none);
