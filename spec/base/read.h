/* SPDX-License-Identifier: MIT */
/*
 * Reading the members of an object that came from outside: what is absent, null or of another type
 * counts as empty, and texts are bounded. Private to spec/.
 */
#pragma once

#include "spec/base/value.h"

#define READ_MAX_WORD	 255  /* bytes of a name, a reason, a phase */
#define READ_MAX_MESSAGE 2048 /* bytes of a text for people */

/* The member KEY of O, which may be NULL; if there are two, the last one. NULL: O is no map, or has no such member. */
const struct spec_value *spec_read_member(const struct spec_value *o, const char *key);
/* Like spec_read_member; NULL also if the member is of another type. */
const struct spec_value *spec_read_map(const struct spec_value *o, const char *key);
const struct spec_value *spec_read_list(const struct spec_value *o, const char *key);
/* The text of KEY, borrowed; "" if there is no such text. */
const char *spec_read_text(const struct spec_value *o, const char *key);
/* The number of KEY; NONE if there is no such number, or it is not between 0 and INT32_MAX. */
int spec_read_int(const struct spec_value *o, const char *key, int none);
/* The string of KEY, or a number as it is written; "" if there is none. */
const char *spec_read_word(const struct spec_value *o, const char *key);
/* The boolean of KEY; NONE if there is none. */
bool spec_read_flag(const struct spec_value *o, const char *key, bool none);
/* The boolean of KEY; false if there is none. */
bool spec_read_bool(const struct spec_value *o, const char *key);
/*
 * The time of KEY, "2026-11-21T09:08:40Z", in ns since 1970, in whole seconds. 0: there is none, or it is beyond
 * int64_t.
 */
int64_t spec_read_time(const struct spec_value *o, const char *key);

/* The I-th item of LIST, or member of a map (either may be NULL), and their number. */
const struct spec_value *spec_read_at(const struct spec_value *list, size_t i);
size_t spec_read_count(const struct spec_value *list);

/* The number of TEXT, which is made of decimal digits and nothing else, at most INT32_MAX; -1: it is not. */
int spec_read_digits(const char *text);

/* Like spec_set, with at most MAX bytes of TEXT, cut between characters. */
void spec_read_copy(char **field, const char *text, size_t max);
/* Like spec_read_copy, with the text of member KEY of O, at most READ_MAX_WORD bytes of it. */
void spec_read_copy_word(char **field, const struct spec_value *o, const char *key);
/* Like spec_read_copy, with the text of O's member "message", at most READ_MAX_MESSAGE bytes of it. */
void spec_read_copy_message(char **field, const struct spec_value *o);
