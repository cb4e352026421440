/* SPDX-License-Identifier: MIT */
/*
 * A JSON text from outside as read-only values (read.h). All values of a text are in one block of
 * memory with the text itself, so that reading ten thousand objects does not allocate and free a
 * million small blocks. Private to spec/.
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
	 * The string, without quotes and escapes; or the word as written; "" for a map or a list.
	 */
	const char *text;
	/* The values in a map or a list, in their order; a map may have a key twice. */
	const struct spec_value *items;
	unsigned n; /* values in a map or a list; bytes of a string, which may contain a NUL */
	enum spec_value_type type;
};

/*
 * Parse JSON (LEN bytes, which the caller has bounded), nested at most as deep as a splitter
 * allows, without checking that its strings are UTF-8. Return 0 and *RET, which one free()
 * releases; -EINVAL: it is not JSON, or has INT_MAX bytes or more.
 */
int spec_value_parse(const char *json, size_t len, struct spec_value **ret);

/*
 * Like spec_value_parse, for a server's map of at most SPEC_MAX_WATCHED bytes. -EINVAL also if it
 * is not a map, or longer.
 */
int spec_value_parse_map(const char *json, size_t len, struct spec_value **ret);
