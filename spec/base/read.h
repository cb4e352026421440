/* SPDX-License-Identifier: MIT */
/*
 * Reading the members of an object that came from outside: what is absent, null or of another type
 * counts as empty, and texts are bounded. Private to spec/.
 */
#ifndef KXFS_SPEC_BASE_READ_H
#define KXFS_SPEC_BASE_READ_H

#include <json-c/json.h>

#include "spec/base/base.h"

#define READ_MAX_WORD	 255  /* bytes of a name, a reason, a phase */
#define READ_MAX_MESSAGE 2048 /* bytes of a text for people */

/* The member KEY of O, which may be NULL; NULL: O has no such member of this type. */
struct json_object *spec_read_map(struct json_object *o, const char *key);
struct json_object *spec_read_list(struct json_object *o, const char *key);
/* Borrowed; "" if there is no such text. */
const char *spec_read_text(struct json_object *o, const char *key);
/* NONE if there is no such number, or it is not between 0 and INT32_MAX. */
int spec_read_int(struct json_object *o, const char *key, int none);
bool spec_read_bool(struct json_object *o, const char *key);
/* The time of "2026-11-21T09:08:40Z" in ns since 1970, of whole seconds. 0: it is none, or beyond int64_t. */
int64_t spec_read_time(struct json_object *o, const char *key);

/* The I-th item of LIST (which may be NULL), and their number. */
struct json_object *spec_read_at(struct json_object *list, size_t i);
size_t spec_read_count(struct json_object *list);

/* Decimal digits and nothing else, at most INT32_MAX; -1: not so. */
int spec_read_digits(const char *text);

/* spec_set with at most MAX bytes of TEXT, cut between characters. */
void spec_read_copy(char **field, const char *text, size_t max);

#endif
