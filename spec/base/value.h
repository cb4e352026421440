/* SPDX-License-Identifier: MIT */
/*
 * Parses untrusted JSON into read-only values. One block of memory has the text and all values,
 * since a million small allocations for ten thousand objects would be slow. For the spec_read
 * functions, a member that is null or has the wrong type counts as absent. Private to spec/.
 */
#pragma once

#include "spec/base/base.h"

enum spec_value_type {
	SPEC_VALUE_MAP,
	SPEC_VALUE_LIST,
	SPEC_VALUE_STRING,
	SPEC_VALUE_NUMBER,
	SPEC_VALUE_BOOL,
	SPEC_VALUE_NULL,
};

struct spec_value {
	const char *key; /* "" if the value is not in a map */
	/*
	 * For a string, its contents after decoding escapes. For a number, true, false or null, the
	 * text as written. Otherwise "".
	 */
	const char *text;
	/* The members of a map, or the items of a list, in order. A key may occur twice. */
	const struct spec_value *items;
	/* the number of ITEMS; for a string, its length in bytes, since it may contain a NUL */
	unsigned n;
	enum spec_value_type type;
};

/*
 * Parse LEN bytes of JSON; the caller has checked LEN against a bound. Strings need not be valid
 * UTF-8. Return 0, and set *RET, which the caller releases by one free(). Return -EINVAL if the
 * text is not JSON, is nested too deeply, or has INT_MAX bytes or more.
 */
int spec_value_parse(const char *json, size_t len, struct spec_value **ret);

/*
 * Like spec_value_parse, but also return -EINVAL if the value is not a map, or LEN exceeds
 * SPEC_MAX_WATCHED.
 */
int spec_value_parse_map(const char *json, size_t len, struct spec_value **ret);

/* --- members --- */

#define READ_MAX_WORD	 255  /* bytes of a name, a reason or a phase */
#define READ_MAX_MESSAGE 2048 /* bytes of a message */

/* Return the last member KEY of O; NULL if there is none, or if O is not a map. O may be NULL. */
const struct spec_value *spec_read_member(const struct spec_value *o, const char *key);
/* Like spec_read_member, but return NULL if the value has another type than map (or list). */
const struct spec_value *spec_read_map(const struct spec_value *o, const char *key);
const struct spec_value *spec_read_list(const struct spec_value *o, const char *key);
/* Return the string, borrowed; "" if it is absent. */
const char *spec_read_text(const struct spec_value *o, const char *key);
/* Return the number; NONE if it is absent, or not between 0 and INT32_MAX. */
int spec_read_int(const struct spec_value *o, const char *key, int none);
/* Return a string, or a number as written; "" if it is absent. */
const char *spec_read_word(const struct spec_value *o, const char *key);
bool spec_read_flag(const struct spec_value *o, const char *key, bool none);
bool spec_read_bool(const struct spec_value *o, const char *key);
/* Return the time in ns since 1970, rounded down to a second; 0 if absent or not valid. */
int64_t spec_read_time(const struct spec_value *o, const char *key);

/* LIST is a list, a map or NULL. Return its I-th item or member, or NULL. */
const struct spec_value *spec_read_at(const struct spec_value *list, size_t i);
size_t spec_read_count(const struct spec_value *list);
/* Return the first item whose member KEY is the string TEXT, or NULL. LIST may be NULL. */
const struct spec_value *spec_read_item(const struct spec_value *list, const char *key,
					const char *text);

/* Return the number in TEXT; -1 if TEXT has other characters than digits, or exceeds INT32_MAX. */
int spec_read_digits(const char *text);

/* Like spec_set, but copy at most MAX bytes, without cutting a character. */
void spec_read_copy(char **field, const char *text, size_t max);
/* Copy at most READ_MAX_WORD bytes of the string in O's member KEY. */
void spec_read_copy_word(char **field, const struct spec_value *o, const char *key);
/* Copy at most READ_MAX_MESSAGE bytes of the member "message". */
void spec_read_copy_message(char **field, const struct spec_value *o);
