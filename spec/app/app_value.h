/* SPDX-License-Identifier: MIT */
/*
 * Functions that read single values of an AppDef. They check type and range, and add errors with
 * the position of the value. After an error, they continue, so that all errors of a document are
 * reported together. Private to spec/app/.
 */
#pragma once

#include "spec/app/app.h"
#include "spec/yaml/yaml.h"

struct app_reader {
	const struct spec_app_rules *rules;
	struct spec_errors *e;
};

/*
 * One step of a path, linked to the step above it. app_path_text makes a text of the path only if
 * an error needs it.
 */
struct app_path {
	const struct app_path *up; /* NULL for a member of the document's root */
	const char *key;	   /* NULL in a list */
	size_t index;		   /* in a list */
};

/*
 * A field of a map. In a table of fields, the last row has no name. LOAD reads the field's value,
 * which is not null, into the member at OFFSET. If LOAD is NULL, the value must be a whole number
 * from MIN to MAX, and the member an int64_t. If the value is null, the field counts as absent if
 * NULLABLE is true; otherwise the null is an error.
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

/* Add an error at NODE, which has the path PATH. */
void app_error(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	       const char *fmt, ...) printf_like(4, 5);

/* Return PATH as text, such as "roles[0].env.A", malloc'ed. */
char *app_path_text(const struct app_path *path);

/* Read the map NODE into the zeroed struct INTO. Add errors for unknown and missing fields. */
void app_read_map(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		  const struct app_field *fields, void *into);

/* True if NODE is of TYPE and not null. Otherwise add an error with HINT, a remedy or "". */
bool app_is(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	    enum spec_yaml_type type, const char *hint);

/* Functions for an app_field's LOAD. MEMBER points to a char *, unless stated otherwise. */
void app_read_text(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* Read a text that is not empty. */
void app_read_word(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* Read the name of an app or of a role. */
void app_read_name(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* Read a map as JSON text. */
void app_read_json(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   void *member);
/* Like app_read_json, for parts of manifests: scalars get the types that kubectl gives them. */
void app_read_object(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member);
/* MEMBER points to a double. */
void app_read_number(struct app_reader *r, const struct app_path *path,
		     const struct spec_yaml *node, void *member);

/* Read a whole number from MIN to MAX into *RET. Return false if an error was added. */
bool app_int(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
	     int64_t min, int64_t max, int64_t *ret);

/* Return NODE's value as text, malloc'ed: JSON for a map or a list. After an error, return NULL. */
char *app_any(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node);

/* Append a zeroed element of SIZE bytes to the array *V of *N elements, and return its address. */
void *app_add(void *v, size_t *n, size_t size);

/* --- mount.c --- */

void spec_mount_clear(struct spec_mount *m);

/* Append the mounts in NODE, a map or a string, to ROLE. An error may leave a mount incomplete. */
void app_read_mount(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		    struct spec_role *role);

/* --- named_resource.c --- */

/*
 * Set *RET to the resource NAME, and return 0. If no name matches exactly, ignore case. If there is
 * no such resource, return -ENOENT, and set *SUGGESTION to a similar name; NULL if no name is
 * similar.
 */
int spec_named_resource(const char *name, struct spec_resource *ret, const char **suggestion);
