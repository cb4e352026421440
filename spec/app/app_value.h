/* SPDX-License-Identifier: MIT */
/*
 * Functions that read single values of an AppDef: they check type and range, and add errors with
 * the position of the value. Private to spec/app/. After an error, every function continues, so
 * that all errors of a document are reported together.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/yaml/yaml.h"

struct app_reader {
	const struct spec_app_rules *rules;
	struct spec_errors *e;
};

/*
 * One step of a path. UP is the step before it, so a path is a chain from a value up to the
 * document. kxfs converts a path to text only for an error.
 */
struct app_path {
	const struct app_path *up;
	const char *key; /* the key in a map; NULL in a list */
	size_t index;
};

/*
 * A field of a map. LOAD reads the field's value into the struct's member at OFFSET. If LOAD is
 * NULL, the value is a whole number from MIN to MAX, and the member is an int64_t. LOAD is never
 * called for a null. If NULLABLE is true, a null counts as an absent field. If NULLABLE is false, a
 * null is an error.
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

/* Add an error at NODE. PATH is the path of NODE. */
void app_error(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	       const char *fmt, ...) printf_like(4, 5);

/* Return PATH as text, such as "roles[0].env.A", malloc'ed. */
char *app_path_text(const struct app_path *path);

/*
 * Read the map NODE into the struct INTO, which is empty. Unknown and missing fields are errors. A
 * field without a name ends FIELDS.
 */
void app_read_map(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		  const struct app_field *fields, void *into);

/*
 * True if NODE is of TYPE and not null. Otherwise add an error and return false. HINT explains to
 * the user how to write the value; it may be "".
 */
bool app_is(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	    enum spec_yaml_type type, const char *hint);

/* Read any text; *MEMBER is a char *. This and the functions below can be an app_field's LOAD. */
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
 * Like app_read_json, but for a map that contains parts of manifests. Scalars get the types that
 * kubectl gives them.
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

/* Return NODE's value as text, malloc'ed: JSON for a map or a list. After an error, return NULL. */
char *app_any(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node);

/*
 * V is the address of a pointer to an array with *N elements of SIZE bytes. Append a zeroed
 * element, and return its address.
 */
void *app_add(void *v, size_t *n, size_t size);

/* --- mount.c --- */

void spec_mount_clear(struct spec_mount *m);

/*
 * Append the mounts in NODE (a map or a string) to the array *V of *N mounts. HOME replaces a
 * leading "~" in the source of a bind mount in string form. Add errors to E; PATH is the path of
 * NODE.
 */
void spec_mount_parse(const struct spec_yaml *node, const struct app_path *path, const char *home,
		      struct spec_mount **v, size_t *n, struct spec_errors *e);

/* --- named_resource.c --- */

/*
 * Set RET to the named resource NAME of TorchX 0.7.0 or a later version. Ignore case if no name
 * matches exactly. Return 0. If there is no such name, return -ENOENT and set *SUGGESTION to a
 * similar name, or to NULL.
 */
int spec_named_resource(const char *name, struct spec_resource *ret, const char **suggestion);
