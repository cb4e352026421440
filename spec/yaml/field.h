/* SPDX-License-Identifier: MIT */
/*
 * Converts structs to JSON maps and back. A table describes the fields of each struct. Reading
 * checks everything, since files on disk are untrusted. Private to spec/.
 */
#pragma once

#include "spec/base/tree.h"
#include "spec/base/value.h"

enum spec_field_type {
	SPEC_FIELD_TEXT, /* char *; the field is set by spec_set */
	SPEC_FIELD_WORD, /* an enum, written as one of WORDS */
	SPEC_FIELD_BOOL,
	SPEC_FIELD_INT,
	SPEC_FIELD_UNSIGNED,
	SPEC_FIELD_INT64,
	SPEC_FIELD_UINT64,
	SPEC_FIELD_TIME, /* int64_t, ns since 1970 */
};

/* A row of a table of fields. The last row has no KEY. */
struct spec_field {
	const char *key;
	enum spec_field_type type;
	/*
	 * True if the JSON map need not have the member. If the member is missing, reading leaves
	 * the value in the struct unchanged. If you add a field to a format, make it optional or
	 * increase the version of the format.
	 */
	bool optional;
	bool hidden; /* true if output for people omits the field */
	size_t at;
	int64_t min, max;	  /* limits of an INT, an UNSIGNED or an INT64 */
	const char *const *words; /* for a WORD: the name of each value; the array ends with NULL */
};

/*
 * A row for the member NAME of the struct STRUCTURE. KIND is the field's type. Further arguments
 * set other members of struct spec_field.
 */
#define SPEC_FIELD(structure, name, kind, ...)                                                     \
	{                                                                                          \
		.key = #name, .type = kind, .at = offsetof(structure, name), __VA_ARGS__           \
	}

/* Free the texts of the struct at BASE. */
void spec_fields_unset(const struct spec_field *fields, void *base);
/*
 * Add the fields of the struct at BASE to O. If PEOPLE is true, the output is for people: omit
 * hidden fields and write times as dates. If PEOPLE is false, write times as exact numbers.
 */
void spec_fields_write(struct json_object *o, const struct spec_field *fields, const void *base,
		       bool people);
/*
 * Check the member "version" of O. Return 0 if it equals VERSION. Return -ENOTSUP if it is another
 * number. Return -EINVAL if it is missing or not a number.
 */
int spec_fields_version(const struct spec_value *o, int64_t version);
/* Read all FIELDS of O into the struct at BASE. Ignore other members. Return 0 or -EINVAL. */
int spec_fields_read(const struct spec_value *o, const struct spec_field *fields, void *base);
