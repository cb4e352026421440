/* SPDX-License-Identifier: MIT */
/*
 * Parses JSON text from outside into read-only values. One block of memory contains the text and
 * all its values, since a million small allocations for ten thousand objects would be slow.
 * Functions that read a member treat it as absent if it is null or has another type. Functions that
 * copy a text limit its length. Private to spec/.
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
	const char *key; /* the value's key if the value is in a map; otherwise "" */
	/*
	 * For a string, its contents without quotes and escapes. For a number, true, false or null,
	 * its text as written. For a map or a list, "".
	 */
	const char *text;
	/* The members of a map, or the items of a list, in order. A key may occur twice. */
	const struct spec_value *items;
	/* the number of ITEMS; for a string, of bytes in TEXT, which may contain a NUL */
	unsigned n;
	enum spec_value_type type;
};

/*
 * Parse LEN bytes of JSON. The caller has checked LEN against a bound. The depth of nesting is
 * limited as in a splitter (spec/api/split.h). Strings need not be valid UTF-8. Return 0 and set
 * *RET, which the caller releases by one free(). Return -EINVAL if the text is not JSON, or has
 * INT_MAX bytes or more.
 */
int spec_value_parse(const char *json, size_t len, struct spec_value **ret);

/*
 * Like spec_value_parse, for a map from a server. Also return -EINVAL if the value is not a map, or
 * the text is longer than SPEC_MAX_WATCHED bytes.
 */
int spec_value_parse_map(const char *json, size_t len, struct spec_value **ret);

/* --- members --- */

#define READ_MAX_WORD	 255  /* the maximum length of a name, a reason or a phase, in bytes */
#define READ_MAX_MESSAGE 2048 /* the maximum length of a text for people, in bytes */

/*
 * Return the value of O's member KEY. If O has several members KEY, return the last one's. Return
 * NULL if O has no such member, is not a map, or is NULL.
 */
const struct spec_value *spec_read_member(const struct spec_value *o, const char *key);
/*
 * Like spec_read_member. But spec_read_map returns NULL if the value is not a map, and
 * spec_read_list returns NULL if it is not a list.
 */
const struct spec_value *spec_read_map(const struct spec_value *o, const char *key);
const struct spec_value *spec_read_list(const struct spec_value *o, const char *key);
/* Return the text of O's member KEY, borrowed; "" if O has no string KEY. */
const char *spec_read_text(const struct spec_value *o, const char *key);
/* Return the number in O's member KEY; NONE if it is absent, or not between 0 and INT32_MAX. */
int spec_read_int(const struct spec_value *o, const char *key, int none);
/*
 * Return the text of O's member KEY, a string or a number. Return "" if it is absent. The text of a
 * number is the number as written.
 */
const char *spec_read_word(const struct spec_value *o, const char *key);
/* Return the boolean in O's member KEY; NONE if it is absent. */
bool spec_read_flag(const struct spec_value *o, const char *key, bool none);
/* Return the boolean in O's member KEY; false if it is absent. */
bool spec_read_bool(const struct spec_value *o, const char *key);
/*
 * Return the time in O's member KEY ("2026-11-21T09:08:40Z") in ns since 1970, rounded down to a
 * whole second. Return 0 if it is absent, is not after 1970-01-01, or does not fit in int64_t.
 */
int64_t spec_read_time(const struct spec_value *o, const char *key);

/*
 * LIST is a list or a map, or NULL. spec_read_at returns its I-th item or member, or NULL if there
 * is none. spec_read_count returns the number of items or members.
 */
const struct spec_value *spec_read_at(const struct spec_value *list, size_t i);
size_t spec_read_count(const struct spec_value *list);
/* Return the first item of LIST whose member KEY is the string TEXT, or NULL. LIST may be NULL. */
const struct spec_value *spec_read_item(const struct spec_value *list, const char *key,
					const char *text);

/* Return the number in TEXT; -1 if TEXT is not decimal digits, or exceeds INT32_MAX. */
int spec_read_digits(const char *text);

/* Like spec_set, but copy at most MAX bytes of TEXT. A cut is never within a character. */
void spec_read_copy(char **field, const char *text, size_t max);
/* Like spec_read_copy, for the string in O's member KEY. Copy at most READ_MAX_WORD bytes. */
void spec_read_copy_word(char **field, const struct spec_value *o, const char *key);
/* Like spec_read_copy_word, for the member "message". Copy at most READ_MAX_MESSAGE bytes. */
void spec_read_copy_message(char **field, const struct spec_value *o);
