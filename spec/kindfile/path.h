/* SPDX-License-Identifier: MIT */
/*
 * Values of a kind file: a path into an object, one of its labels or annotations, the number at the
 * end of its name, the key of a map, or a constant. Private to spec/kindfile.
 */
#pragma once

#include "spec/base/value.h"

/* Memory that is freed as a whole. Zeroed, it is empty. */
struct arena {
	void **v;
	size_t n;
};

/* Make ARENA the owner of P, which is malloc'ed, and return P. */
void *arena_own(struct arena *arena, void *p);
void arena_clear(struct arena *arena);

/* A value. Plain data; what it points to is in an arena. Zeroed, no object has it. */
struct value {
	enum { FROM_CONSTANT, FROM_PATH, FROM_KEY, FROM_NAME } from;
	const char *text; /* as it was written */
	/*
	 * The keys of a path, each terminated by a '\0'; an empty key stands for each item of a
	 * list. LAST: the last key. A label or an annotation is a path, too.
	 */
	const char *steps, *last;
	bool many; /* a step goes through a list */
};

/* Values; the first one that exists counts. */
struct values {
	struct value *v;
	size_t n;
};

/* Parse TEXT. Return NULL, or why TEXT is not a value, malloc'ed. */
char *value_parse(struct arena *arena, const char *text, struct value *ret);

/*
 * Return the value in OBJECT at the path V, which has no [*], borrowed. NULL if it is absent or
 * null, or V is not a path.
 */
const struct spec_value *value_at(const struct value *v, const struct spec_value *object);
/* Return the time at the path V, or 0; see spec_read_time. */
int64_t value_time(const struct value *v, const struct spec_value *object);
/*
 * Return the text of V in OBJECT, borrowed: a string, or a number or boolean as written; "" if
 * OBJECT does not have V.
 */
const char *value_text(const struct value *v, const struct spec_value *object);
/* Return the text of the first of V that OBJECT has. */
const char *values_text(const struct values *v, const struct spec_value *object);
/* Return the number of the first of V that OBJECT has, from 0 to INT32_MAX; NONE if it has none. */
int values_number(const struct values *v, const struct spec_value *object, int none);
/*
 * Return the largest number at V in OBJECT; NONE if V does not exist. If V has a [*], an item of
 * that list without a number counts as EACH.
 */
int value_largest(const struct value *v, const struct spec_value *object, int each, int none);
