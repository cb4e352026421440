/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes YAML. Reading makes a tree of nodes, which have positions, from a document. JSON
 * is YAML, too. The size, the depth and the expansion of aliases are limited (spec/base/limits.h),
 * and duplicate keys are errors. Writing makes YAML that parsers of YAML 1.1 and 1.2 read as the
 * same value. All functions are pure. A tree belongs to one thread.
 *
 * yaml.c makes the tree, and finds the node of a path. yaml_input.c prepares the bytes for libyaml,
 * and explains libyaml's errors. yaml_json.c makes a JSON value from a tree. yaml_emit.c writes a
 * JSON value. field.h converts structs to JSON and back.
 */
#pragma once

#include "spec/base/error.h"

struct json_object; /* json-c; never leaves spec/ (rule D4) */

enum spec_yaml_type { SPEC_YAML_SCALAR, SPEC_YAML_LIST, SPEC_YAML_MAP };

/*
 * A node. After spec_yaml_finish, it does not change. A caller may make a node of its own to pass a
 * position to a function. Plain data.
 */
struct spec_yaml {
	enum spec_yaml_type type;
	unsigned line, column; /* from 1 */
	/* TEXT, LEN and PLAIN are only for scalars. */
	char *text; /* UTF-8; may include NUL */
	size_t len;
	bool plain; /* true if not quoted, not a block, and without the tag !!str */
	/* The tag in the document, such as "tag:yaml.org,2002:int"; NULL if there is none. */
	char *tag;
	/* The items of a list, or the pairs of a map: key, value, key, value, ... */
	struct spec_yaml **v;
	size_t n;
};

/*
 * Check the size and the encoding of a file, as spec_yaml_parse_all does, but do not parse it. Add
 * errors to E; they never quote the file. Return 0 or E's errno.
 */
int spec_yaml_check(const char *text, size_t len, struct spec_errors *e);

/*
 * Parse all documents of a file, except documents that are empty or null. Set *RET to a list of
 * their roots; free it with spec_yaml_free. Call spec_yaml_finish for each root before reading it.
 * Each alias becomes a copy of its original, with the same positions.
 *
 * Return 0 or E's errno. The errors that are added to E are: no document, a syntax error, an
 * unknown alias, a key that is not a scalar or contains NUL, a duplicate key, or an exceeded limit.
 * If there are only errors about duplicate keys, *RET is set nevertheless, so that the caller can
 * find more errors.
 */
int spec_yaml_parse_all(const char *text, size_t len, struct spec_yaml **ret,
			struct spec_errors *e);

enum spec_yaml_rules {
	/*
	 * Only tags of YAML 1.2's core schema are allowed. A map's own value takes precedence over
	 * a merged value, as in PyYAML.
	 */
	SPEC_YAML_CORE,
	SPEC_YAML_KUBECTL, /* the rules of spec_yaml_to_object */
};

/*
 * Expand merge keys and, with SPEC_YAML_CORE, check tags. Errors are added to E. The tree can be
 * read even after errors.
 */
void spec_yaml_finish(struct spec_yaml *root, enum spec_yaml_rules rules, struct spec_errors *e);

/*
 * Remove the only document from the list DOCUMENTS, and return it. The caller must still free
 * DOCUMENTS.
 */
struct spec_yaml *spec_yaml_take_only(struct spec_yaml *documents);

/*
 * Parse a file with one document, and call spec_yaml_finish with SPEC_YAML_CORE. A second document
 * is an error. Return 0 or E's errno; *RET may be set even after an error.
 */
int spec_yaml_parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e);
void spec_yaml_free(struct spec_yaml *root);
define_cleanup(spec_yaml_freep, struct spec_yaml *, spec_yaml_free)

/* Return the value of KEY in M, or NULL if M does not have KEY or is not a map. */
const struct spec_yaml *spec_yaml_get(const struct spec_yaml *m, const char *key);

/*
 * Set *RET_LINE and *RET_COLUMN to the position of the node at PATH in ROOT. If this node does not
 * exist, use the nearest existing node above it. Return false if the used node is ROOT itself. A
 * callback for spec_errors_locate.
 */
bool spec_yaml_find(void *root, const char *path, unsigned *ret_line, unsigned *ret_column);

/*
 * The type of a scalar according to YAML 1.2's core schema. But only decimal numbers count as
 * numbers, so that strtoll and strtod can parse them. Other forms count as text: "010", "0x10",
 * "1_000", "1:30", ".inf".
 */
enum spec_yaml_value {
	SPEC_YAML_NULL,
	SPEC_YAML_BOOL,
	SPEC_YAML_INT,
	SPEC_YAML_FLOAT,
	SPEC_YAML_TEXT
};
enum spec_yaml_value spec_yaml_resolve(const struct spec_yaml *scalar);

/* True if NODE is a plain scalar that means null: "null", "~" or empty. */
bool spec_yaml_is_null(const struct spec_yaml *node);

/*
 * Return the JSON value of NODE, which must be from a document without errors. The caller owns the
 * reference. NULL is JSON's null.
 */
struct json_object *spec_yaml_to_json(const struct spec_yaml *node);

/*
 * Convert NODE to the JSON value that kubectl would send. Plain scalars and keys have the types of
 * YAML 1.1: 0755 is 493, yes is true, and a key 0x1 is "1". Return 0 or E's errno. Errors are: a
 * value that JSON can't express; a value that does not fit its tag; base64 (!!binary); a key that
 * is null, a fraction or a number that is too large; two keys that are equal after the conversion.
 */
int spec_yaml_to_object(const struct spec_yaml *node, struct json_object **ret,
			struct spec_errors *e);

/*
 * Write VALUE as YAML text. A map or list at a level greater than FLOW_DEPTH is on one line; the
 * root has level 1. If FLOW_DEPTH is 0, this applies to no map or list. *RET is malloc'ed and
 * NUL-terminated.
 */
void spec_yaml_emit(struct json_object *value, unsigned flow_depth, char **ret, size_t *ret_len);

/*
 * Add the member KEY to O: the time NS (ns since 1970) as a text; null if NS is 0. spec_yaml_emit
 * writes this text without quotes.
 */
void spec_yaml_add_time(struct json_object *o, const char *key, int64_t ns);
