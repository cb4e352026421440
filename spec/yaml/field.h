/* SPDX-License-Identifier: MIT */
/*
 * Converts structs to JSON maps and back, by a table of their fields. Reading accepts any text,
 * since the disk is untrusted. Private to spec/.
 */
#pragma once

#include "spec/base/tree.h"
#include "spec/base/value.h"

enum spec_field_type {
	SPEC_FIELD_TEXT, /* char *, set by spec_set */
	SPEC_FIELD_WORD, /* an enum, written as one of WORDS */
	SPEC_FIELD_BOOL,
	SPEC_FIELD_INT,
	SPEC_FIELD_UNSIGNED,
	SPEC_FIELD_INT64,
	SPEC_FIELD_UINT64,
	SPEC_FIELD_TIME, /* int64_t, ns since 1970 */
};

/* A row of a table; the last one has no KEY. */
struct spec_field {
	const char *key;
	enum spec_field_type type;
	/*
	 * The member may be missing; then reading leaves the struct's value unchanged. A field that
	 * is added to a format later must be optional, unless the format's version is raised.
	 */
	bool optional;
	bool hidden; /* not shown to people */
	size_t at;
	int64_t min, max;	  /* INT, UNSIGNED, INT64 */
	const char *const *words; /* WORD: the name of each value; ends with NULL */
};

/*
 * A row for the member NAME of STRUCTURE, of type KIND. Further arguments set other members of
 * struct spec_field.
 */
#define SPEC_FIELD(structure, name, kind, ...)                                                     \
	{                                                                                          \
		.key = #name, .type = kind, .at = offsetof(structure, name), __VA_ARGS__           \
	}

/* Free the texts of *BASE. */
void spec_fields_unset(const struct spec_field *fields, void *base);
/*
 * Add the fields of *BASE to O. FOR PEOPLE, write a time as a date; otherwise as the exact number.
 */
void spec_fields_write(struct json_object *o, const struct spec_field *fields, const void *base,
		       bool people);
/*
 * Check O's member "version". Return 0 if it equals VERSION; -ENOTSUP if it differs; -EINVAL if it
 * is missing or not a number.
 */
int spec_fields_version(const struct spec_value *o, int64_t version);
/* Read all FIELDS from O; its other members are ignored. Return 0 or -EINVAL. */
int spec_fields_read(const struct spec_value *o, const struct spec_field *fields, void *base);
