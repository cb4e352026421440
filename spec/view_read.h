/* SPDX-License-Identifier: MIT */
/*
 * Reading the members of an object that came from outside: what is absent, null or of another type
 * counts as empty, and texts are bounded. Private to spec/.
 */
#ifndef KXFS_SPEC_VIEW_READ_H
#define KXFS_SPEC_VIEW_READ_H

#include <json-c/json.h>

#include "spec/base.h"

#define READ_MAX_WORD	 255  /* bytes of a name, a reason, a phase */
#define READ_MAX_MESSAGE 2048 /* bytes of a text for people */

/* The member KEY of O, which may be NULL; NULL: there is none of this type. */
struct json_object *spec_read_map(struct json_object *o, const char *key);
struct json_object *spec_read_list(struct json_object *o, const char *key);
/* Borrowed; "" none. */
const char *spec_read_text(struct json_object *o, const char *key);
/* NONE if there is none, or it is not between 0 and INT32_MAX. */
int spec_read_int(struct json_object *o, const char *key, int none);
bool spec_read_bool(struct json_object *o, const char *key);
/* Of "2026-11-21T09:08:40Z", ns since 1970. 0: none, or none that can be. */
int64_t spec_read_time(struct json_object *o, const char *key);

/* The I-th item of LIST (which may be NULL), and their number. */
struct json_object *spec_read_at(struct json_object *list, size_t i);
size_t spec_read_count(struct json_object *list);

/* Decimal digits and nothing else, at most INT32_MAX; -1: not so. */
int spec_read_digits(const char *text);

/* spec_set with at most MAX bytes of TEXT, cut between characters. 0 or -ENOMEM. */
int must_check spec_read_copy(char **field, const char *text, size_t max);

#endif
