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
 * One step of a path; the steps are a chain from the value up to the document. Converted to text
 * only for errors.
 */
struct app_path {
	const struct app_path *up;
	const char *key; /* the key in a map; NULL in a list */
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

/* Functions for LOAD of struct app_field. Read any text; *MEMBER is a char *. */
void app_read_text(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* Read a text that is not empty; *MEMBER is a char *. */
void app_read_word(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* Read the name of an app or of a role; *MEMBER is a char *. */
void app_read_name(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* Read a map as JSON text; *MEMBER is a char *. */
void app_read_json(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/*
 * Like app_read_json, for a map with parts of manifests: its scalars mean what they mean to
 * kubectl.
 */
void app_read_object(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member);
/* Read a number; *MEMBER is a double. */
void app_read_number(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member);
/* Read a map of text to text; *MEMBER is a struct spec_map. */
void app_read_text_map(struct app_reader *r, const struct app_path *path,
		       const struct spec_yaml *node, void *member);

/* Read a whole number from MIN to MAX into *RET. Return false if an error was added. */
bool app_int(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	     int64_t min, int64_t max, int64_t *ret);

/* Return the value as text (a collection as JSON), malloc'ed; NULL if an error was added. */
char *app_any(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node);

/*
 * Append a zeroed element of SIZE bytes to the array whose address is V, and which has *N elements.
 * Return its address.
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
 * Fill RET for the named resource NAME of TorchX 0.7.0 or a later version. Case is ignored if no
 * name matches exactly. Return 0, or -ENOENT if no name matches; *SUGGESTION is then a similar name
 * or NULL.
 */
int spec_named_resource(const char *name, struct spec_resource *ret, const char **suggestion);

/* Return the I-th name of the table, NULL at its end: for documentation and tests. */
const char *spec_named_resource_name(size_t i);
