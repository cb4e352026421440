/* SPDX-License-Identifier: MIT */
/*
 * Reads an AppDef value by value: the position of a value, its type and range, and the errors.
 * Private to spec/app/. Every function adds its errors to the reader's list and continues, so that
 * all errors of a document are reported together.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/yaml/yaml.h"

struct app_reader {
	const struct spec_app_rules *rules;
	struct spec_errors *e;
};

/*
 * One step of a path; a chain from the value up to the document. Converted to text only for errors.
 */
struct app_path {
	const struct app_path *up;
	const char *key; /* of a map; NULL for a list */
	size_t index;
};

/*
 * A field of a map: its name, and the function that reads it into the struct (at OFFSET). If LOAD
 * is NULL, it is a whole number from MIN to MAX (int64_t). A null is refused before LOAD is called,
 * or treated as an absent field.
 */
struct app_field {
	const char *name;
	bool required;
	bool nullable;
	void (*load)(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member);
	size_t offset;
	int64_t min, max;
};

/* Add an error at NODE. */
void app_error(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	       const char *fmt, ...) printf_like(4, 5);

/* Return PATH as text, "roles[0].env.A"; malloc'ed. */
char *app_path_text(const struct app_path *path);

/*
 * Read a map field by field into INTO, which is empty. Unknown and missing fields are errors.
 * FIELDS ends with an empty one.
 */
void app_read_map(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		  const struct app_field *fields, void *into);

/*
 * True if NODE is of TYPE. If not, or if it is null, add an error. HINT explains how to write it;
 * may be "".
 */
bool app_is(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	    enum spec_yaml_type type, const char *hint);

/* Readers of fields. *MEMBER is a char *: any text, */
void app_read_text(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* one that is not empty, */
void app_read_word(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* the name of an app or of a role, */
void app_read_name(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* the JSON text of a map, */
void app_read_json(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* or that of a map with parts of manifests, with kubectl's meaning. */
void app_read_object(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member);
/* *MEMBER is a double. */
void app_read_number(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member);
/* *MEMBER is a struct spec_map. */
void app_read_text_map(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, void *member);

/* Read a whole number from MIN to MAX. */
bool app_int(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	     int64_t min, int64_t max, int64_t *ret);

/* Return the value as text (a collection as JSON), malloc'ed; NULL if an error was added. */
char *app_any(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node);

/*
 * Add a zeroed member of SIZE bytes to the array at address V, which has *N of them. Return its
 * address.
 */
void *app_add(void *v, size_t *n, size_t size);

/* --- mount.c --- */

void spec_mount_clear(struct spec_mount *m);

/*
 * Append the mounts in NODE (a map or a string) to *V, *N. HOME replaces a leading "~" of a bind
 * source in the string form. Errors are added to E with PATH.
 */
void spec_mount_parse(const struct spec_yaml *node, const struct app_path *path, const char *home,
		      struct spec_mount **v, size_t *n, struct spec_errors *e);

/* --- named_resource.c --- */

/*
 * Find a named resource: one of TorchX 0.7.0, or that later versions add. The lookup is exact first, then ignores
 * case. Fill RET for NAME. -ENOENT: no such name (*SUGGESTION is a near one or NULL).
 */
int spec_named_resource(const char *name, struct spec_resource *ret, const char **suggestion);

/* Return the I-th name of the table, NULL at its end: for documentation and tests. */
const char *spec_named_resource_name(size_t i);
