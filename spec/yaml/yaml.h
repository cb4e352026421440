/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes YAML. Reading makes a tree of nodes from a document (JSON is YAML, too). Each
 * node has its position. A plain scalar has its text as written. Bytes, depth and the expansion of
 * aliases are limited (spec/base/limits.h), and duplicate keys are errors. Writing makes block YAML
 * from a JSON value. A reader of YAML 1.1 and a reader of YAML 1.2 parse this YAML as the same
 * value. All functions are pure. A tree belongs to one thread.
 *
 * The files of this folder: yaml.c makes the tree, and finds the node of a path. yaml_input.c
 * prepares the bytes for libyaml, and explains libyaml's errors. yaml_json.c resolves scalars and
 * makes a JSON value from a tree, by the rules of TorchX or of kubectl. yaml_emit.c writes a JSON
 * value. field.h writes structs as JSON and reads them back, by tables of their fields.
 */
#pragma once

#include "spec/base/error.h"

struct json_object; /* json-c; never leaves spec/ (rule D4) */

enum spec_yaml_type { SPEC_YAML_SCALAR, SPEC_YAML_LIST, SPEC_YAML_MAP };

/*
 * A node. Plain data. A tree does not change after parsing. Code that reads a tree may make its own
 * nodes, for example to pass a position to another function.
 */
struct spec_yaml {
	enum spec_yaml_type type;
	unsigned line, column; /* from 1 */
	/* The members TEXT, LEN and PLAIN are only for a scalar. */
	char *text; /* UTF-8; LEN bytes, which may include NUL */
	size_t len;
	/*
	 * True if the scalar is not quoted, not a block, and has no tag !!str. It may then be a
	 * null, a number or a boolean.
	 */
	bool plain;
	/* The explicit tag of the node, such as "tag:yaml.org,2002:int"; or NULL. */
	char *tag;
	/* The items of a list, or the pairs of a map in order: key, value, key, value, ... */
	struct spec_yaml **v;
	size_t n;
};

/*
 * Parse all documents of a file. Skip documents that are empty or null. On success, *RET is a list
 * of the roots of the documents. Call spec_yaml_finish for each root before reading it. Free the
 * list with spec_yaml_free.
 *
 * Errors are added to E, and the function returns E's errno. Errors are: no document, a syntax
 * error, an unknown alias, a key that is not a scalar or contains NUL, and a duplicate key. If
 * duplicate keys are the only errors, *RET is set nevertheless, so that the caller can look for
 * more errors. After any other error, *RET is NULL.
 *
 * Parsing replaces each alias by a copy of the node to which the alias refers. The nodes of the
 * copy have the positions of the original. The bytes of all copies count against SPEC_MAX_EXPANDED.
 */
int spec_yaml_parse_all(const char *text, size_t len, struct spec_yaml **ret,
			struct spec_errors *e);

/* The rules to use where YAML parsers disagree. */
enum spec_yaml_rules {
	/*
	 * Only the tags of YAML 1.2's core schema are valid. If a map has a key itself and also
	 * merges it ("<<"), its own value counts, as in PyYAML.
	 */
	SPEC_YAML_CORE,
	/* The rules of kubectl: see spec_yaml_to_object. */
	SPEC_YAML_KUBECTL,
};

/*
 * Check the tags of all nodes of ROOT, and expand merge keys. Add errors to E. The tree is complete
 * after this, even if there are errors.
 */
void spec_yaml_finish(struct spec_yaml *root, enum spec_yaml_rules rules, struct spec_errors *e);

/*
 * DOCUMENTS is a list with only one document. Remove the document from the list and return it. The
 * caller owns the document, and must still free the list.
 */
struct spec_yaml *spec_yaml_take_only(struct spec_yaml *documents);

/*
 * Like spec_yaml_parse_all, for a file with one document. A second document is an error. Set *RET
 * to the document's root. It is already finished with the rules SPEC_YAML_CORE.
 */
int spec_yaml_parse(const char *text, size_t len, struct spec_yaml **ret, struct spec_errors *e);
void spec_yaml_free(struct spec_yaml *root);
define_cleanup(spec_yaml_freep, struct spec_yaml *, spec_yaml_free)

/* Return the value of KEY in M, or NULL if M does not have KEY or is not a map. */
const struct spec_yaml *spec_yaml_get(const struct spec_yaml *m, const char *key);

/*
 * Return the position of PATH in the document ROOT. If PATH does not exist, return the position of
 * the longest beginning of PATH that exists. Return false if not even the first step of PATH
 * exists. This function implements spec_errors_find.
 */
bool spec_yaml_find(void *root, const char *path, unsigned *ret_line, unsigned *ret_column);

/*
 * The type of a scalar. For a plain scalar, YAML 1.2's core schema determines the type. Any other
 * scalar is text. Numbers are decimal, so that strtoll and strtod can parse them. Other forms of
 * numbers count as text here: "010", "0x10", "1_000", "1:30", ".inf".
 */
enum spec_yaml_value {
	SPEC_YAML_NULL,
	SPEC_YAML_BOOL,
	SPEC_YAML_INT,
	SPEC_YAML_FLOAT,
	SPEC_YAML_TEXT
};
enum spec_yaml_value spec_yaml_resolve(const struct spec_yaml *scalar);

/* True if NODE is a plain scalar that means null in YAML (~, null, Null, NULL or nothing). */
bool spec_yaml_is_null(const struct spec_yaml *node);

/*
 * Convert the tree NODE to a JSON value, and return it. The tree must have been parsed without
 * errors. The caller owns the reference. The types of scalars are those from spec_yaml_resolve. A
 * null becomes NULL, even at the root.
 */
struct json_object *spec_yaml_to_json(const struct spec_yaml *node);

/*
 * Convert the tree NODE to the JSON value that kubectl would send. Plain scalars and keys have the
 * types of YAML 1.1 (0755 is 493, yes is true, a key 0x1 is "1"). Tags are applied. Return 0 and
 * set *RET. If there are errors, add them to E and return E's errno. Errors are: a value or a key
 * that JSON can't express, a value that does not fit its tag, and two keys that become equal.
 */
int spec_yaml_to_object(const struct spec_yaml *node, struct json_object **ret,
			struct spec_errors *e);

/*
 * Write VALUE as YAML text. Keys are in the object's order. Strings that look like another type are
 * quoted. A text of several lines is written as a literal block if such a block can express it
 * exactly. Unicode is not escaped. Collections deeper than level FLOW_DEPTH (the root has level 1)
 * are in flow style, on one line; none if FLOW_DEPTH is 0. *RET is malloc'ed and NUL-terminated.
 */
void spec_yaml_emit(struct json_object *value, unsigned flow_depth, char **ret, size_t *ret_len);

/*
 * Add the member KEY to O. Its value is the time NS (in ns since 1970) as text, or null if NS is 0.
 * spec_yaml_emit writes the text without quotes, although YAML 1.1 readers then parse it as a time.
 */
void spec_yaml_add_time(struct json_object *o, const char *key, int64_t ns);
