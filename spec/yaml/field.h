/* SPDX-License-Identifier: MIT */
/*
 * Converts structs to JSON maps and back. A table describes the fields of each struct. The JSON to
 * read is untrusted. Private to spec/.
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

/* A row of a table: one field of a struct. In the last row of a table, KEY is NULL. */
struct spec_field {
	const char *key;
	enum spec_field_type type;
	/*
	 * True if the JSON map may lack the member. Reading then does not change the struct's
	 * field. A new field must be optional, unless the version of the file's format increases.
	 */
	bool optional;
	size_t at;		  /* offset of the field in the struct */
	int64_t min, max;	  /* of an INT, an UNSIGNED or an INT64 */
	const char *const *words; /* the names of a WORD's values, ending with NULL */
};

/*
 * A row for the field NAME of STRUCTURE, with the type KIND. Further arguments initialize other
 * members of the row.
 */
#define SPEC_FIELD(structure, name, kind, ...)                                                     \
	{                                                                                          \
		.key = #name, .type = kind, .at = offsetof(structure, name), __VA_ARGS__           \
	}

/* Free the texts of the struct at BASE. */
void spec_fields_unset(const struct spec_field *fields, void *base);
void spec_fields_write(struct json_object *o, const struct spec_field *fields, const void *base);
/* Read FIELDS of O into the struct at BASE. Ignore other members. Return 0 or -EINVAL. */
int spec_fields_read(const struct spec_value *o, const struct spec_field *fields, void *base);
