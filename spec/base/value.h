/* SPDX-License-Identifier: MIT */
/*
 * A JSON text from outside as read-only values. All values of a text are in one block of memory with
 * the text itself, so that reading ten thousand objects does not allocate and free a million small
 * blocks. A member that is absent, null or of another type counts as empty, and texts are bounded.
 * Private to spec/.
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
	const char *key; /* its key, if it is a member of a map; else "" */
	/*
	 * A string without quotes and escapes; another scalar as written; "" for a map or a list.
	 */
	const char *text;
	/* The values of a map or a list in the order of the text; a key may occur twice. */
	const struct spec_value *items;
	unsigned n; /* values in a map or a list; bytes of a string, which may contain a NUL */
	enum spec_value_type type;
};

/*
 * Parse LEN bytes of JSON; the caller has checked LEN against a bound. Nesting is limited as in a
 * splitter (spec/api/split.h); strings are not checked to be UTF-8. Return 0 and *RET, to be
 * released by one free(); -EINVAL if the text is not JSON, or has INT_MAX bytes or more.
 */
int spec_value_parse(const char *json, size_t len, struct spec_value **ret);

/*
 * Like spec_value_parse, for a map from a server. Also return -EINVAL if the value is not a map, or
 * the text is longer than SPEC_MAX_WATCHED bytes.
 */
int spec_value_parse_map(const char *json, size_t len, struct spec_value **ret);

/* --- members --- */

#define READ_MAX_WORD	 255  /* bytes of a name, a reason, a phase */
#define READ_MAX_MESSAGE 2048 /* bytes of a text for people */

/*
 * Return the member KEY of O, which may be NULL; the last one if there are two. NULL if O is not a
 * map, or has no such member.
 */
const struct spec_value *spec_read_member(const struct spec_value *o, const char *key);
/* Like spec_read_member; NULL also if the member is of another type. */
const struct spec_value *spec_read_map(const struct spec_value *o, const char *key);
const struct spec_value *spec_read_list(const struct spec_value *o, const char *key);
/* Return the text of the member KEY, borrowed; "" if it is absent. */
const char *spec_read_text(const struct spec_value *o, const char *key);
/* Return the number in the member KEY; NONE if it is absent, or not between 0 and INT32_MAX. */
int spec_read_int(const struct spec_value *o, const char *key, int none);
/* Return the string in the member KEY, or a number there as it is written; "" if it is absent. */
const char *spec_read_word(const struct spec_value *o, const char *key);
/* Return the boolean in the member KEY; NONE if it is absent. */
bool spec_read_flag(const struct spec_value *o, const char *key, bool none);
/* Return the boolean in the member KEY; false if it is absent. */
bool spec_read_bool(const struct spec_value *o, const char *key);
/*
 * Return the time in the member KEY, "2026-11-21T09:08:40Z", as ns since 1970, in whole seconds. 0
 * if it is absent, or beyond int64_t.
 */
int64_t spec_read_time(const struct spec_value *o, const char *key);

/*
 * Return the I-th item of a list or the I-th member of a map, and the number of them. LIST may be
 * NULL.
 */
const struct spec_value *spec_read_at(const struct spec_value *list, size_t i);
size_t spec_read_count(const struct spec_value *list);
/* Return the first item of LIST (may be NULL) whose member KEY is TEXT, or NULL. */
const struct spec_value *spec_read_item(const struct spec_value *list, const char *key,
					const char *text);

/* Return the number in TEXT, which has only decimal digits, at most INT32_MAX; -1 otherwise. */
int spec_read_digits(const char *text);

/* Like spec_set, but copy at most MAX bytes of TEXT, cut between characters. */
void spec_read_copy(char **field, const char *text, size_t max);
/* Like spec_read_copy, with the text of member KEY of O, at most READ_MAX_WORD bytes of it. */
void spec_read_copy_word(char **field, const struct spec_value *o, const char *key);
/* Like spec_read_copy, with the text of O's member "message", at most READ_MAX_MESSAGE bytes of it. */
void spec_read_copy_message(char **field, const struct spec_value *o);
