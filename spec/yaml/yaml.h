/* SPDX-License-Identifier: MIT */
/*
 * YAML in and out. In: a document (JSON is YAML) becomes a tree of nodes with positions, in which
 * plain scalars have their text as written. Bytes, depth and aliases are bounded
 * (spec/base/limits.h), and duplicate keys are errors. Out: a JSON value becomes block YAML that
 * YAML 1.1 and 1.2 readers parse as the same value. Pure; a tree belongs to one thread.
 *
 * The folder: yaml.c makes the tree, and finds the node of a path (yaml_input.c prepares its bytes
 * and explains libyaml's errors), yaml_json.c resolves scalars and makes a JSON value from a tree, as
 * TorchX and as kubectl do, yaml_emit.c writes a JSON value. field.h writes structs as JSON and reads
 * them back, by tables of their fields.
 */
#pragma once

#include "spec/base/error.h"

struct json_object; /* json-c; never leaves spec/ (rule D4) */

enum spec_yaml_type { SPEC_YAML_SCALAR, SPEC_YAML_LIST, SPEC_YAML_MAP };

/*
 * A node. Plain data: once parsed, a tree does not change. A reader may make a node of its own, for
 * example for a position.
 */
struct spec_yaml {
	enum spec_yaml_type type;
	unsigned line, column; /* from 1 */
	/* scalar: */
	char *text; /* UTF-8; LEN bytes, which may include NUL */
	size_t len;
	bool plain; /* not quoted, not block text, no explicit !!str: may be a null, number, boolean */
	char *tag; /* as "tag:yaml.org,2002:int", for a scalar or a collection; or NULL */
	/* list: items; map: keys and values in turn (2 * pairs), in the document's order */
	struct spec_yaml **v;
	size_t n;
};

/*
 * Parse all documents of a file; empty or null ones don't count. On success *RET is a list of their
 * roots (free with spec_yaml_free); finish each (spec_yaml_finish) before reading it. No document,
 * a syntax error, an unknown alias, a key that is not a scalar or contains NUL, and a duplicate key
 * are errors: they are added to E, and its errno is returned. Aliases become copies (with the
 * positions of the original), counted against SPEC_MAX_EXPANDED. If the trees are complete in spite
 * of errors (duplicate keys), *RET is set, so that the caller can look for more errors; else it is
 * NULL.
 */
int spec_yaml_parse_all(const char *text, size_t len, struct spec_yaml **ret,
			struct spec_errors *e);

/* The rules where YAML parsers disagree. */
enum spec_yaml_rules {
	/* The tags of YAML 1.2's core schema only, and merge keys ("<<") as in PyYAML: own keys win. */
	SPEC_YAML_CORE,
	/* Those of kubectl: see spec_yaml_to_object. */
	SPEC_YAML_KUBECTL,
};

/*
 * Check the tags of ROOT's nodes and expand its merge keys. Errors are added to E; the tree is
 * complete anyway.
 */
void spec_yaml_finish(struct spec_yaml *root, enum spec_yaml_rules rules, struct spec_errors *e);

/*
 * Take the only document out of the list DOCUMENTS. The caller owns the result, and still frees the
 * list.
 */
struct spec_yaml *spec_yaml_take_only(struct spec_yaml *documents);

/* Like spec_yaml_parse_all, but *RET is the root of the only document, finished by SPEC_YAML_CORE. */
int spec_yaml_parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e);
void spec_yaml_free(struct spec_yaml *root);
define_cleanup(spec_yaml_freep, struct spec_yaml *, spec_yaml_free)

/* Return the value of KEY in map M; NULL if absent. */
const struct spec_yaml *spec_yaml_get(const struct spec_yaml *m, const char *key);

/*
 * Implement spec_errors_find: return the position of PATH in the document ROOT, or of the longest
 * part of PATH that exists. Return false if no part does.
 */
bool spec_yaml_find(void *root, const char *path, unsigned *ret_line, unsigned *ret_column);

/*
 * The type of a scalar: by YAML 1.2's core schema if it is plain, else text. Numbers are decimal
 * (strtoll and strtod can parse them); "010", "0x10", "1_000", "1:30", ".inf" are text here.
 */
enum spec_yaml_value {
	SPEC_YAML_NULL,
	SPEC_YAML_BOOL,
	SPEC_YAML_INT,
	SPEC_YAML_FLOAT,
	SPEC_YAML_TEXT
};
enum spec_yaml_value spec_yaml_resolve(const struct spec_yaml *scalar);

/* True if this plain scalar is YAML's null (~, null, Null, NULL or nothing). */
bool spec_yaml_is_null(const struct spec_yaml *node);

/*
 * Return a JSON value, whose reference the caller owns, of a tree that was parsed without errors.
 * Plain scalars are converted by spec_yaml_resolve; a null is NULL, also at the root.
 */
struct json_object *spec_yaml_to_json(const struct spec_yaml *node);

/*
 * Make the JSON value that kubectl would send for a tree: plain scalars and keys are parsed as YAML
 * 1.1 (0755 is 493, yes is true, a key 0x1 is "1"), and tags are applied. Return 0, or the errno of
 * the errors added to E: a value or a key that JSON lacks, a value that does not fit its tag, two
 * keys that become equal.
 */
int spec_yaml_to_object(const struct spec_yaml *node, struct json_object **ret,
			struct spec_errors *e);

/*
 * Write VALUE as YAML text: keys in the object's order; strings that look like another type quoted;
 * multi-line text as literal blocks where that is lossless; Unicode unescaped. Collections nested
 * deeper than FLOW_DEPTH levels (the root is level 1) are written in flow style on one line;
 * FLOW_DEPTH 0 means no flow style. *RET is malloc'ed and NUL-terminated.
 */
void spec_yaml_emit(struct json_object *value, unsigned flow_depth, char **ret, size_t *ret_len);

/*
 * Add KEY to O: a time in ns since 1970 as text, or null if it is 0. spec_yaml_emit writes it
 * without quotes, although YAML 1.1 readers then parse it as a time.
 */
void spec_yaml_add_time(struct json_object *o, const char *key, int64_t ns);
