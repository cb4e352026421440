/* SPDX-License-Identifier: MIT */
/* Prepares a document's bytes for libyaml, and explains libyaml's errors. Private to spec/yaml/. */
#pragma once

#include <yaml.h>

#include "spec/base/error.h"

/* Refuse a large file, UTF-16 and UTF-32. Skip a byte order mark. Return 0, -EINVAL or -EFBIG. */
int yaml_input_begin(const char **text, size_t *len, struct spec_errors *e);

/*
 * Convert JSON that is not valid YAML: escapes of a surrogate pair ("\ud83d\ude00"), and characters
 * that YAML requires to be escaped. Return YAML (malloc'ed) and set *LEN, or return NULL if libyaml
 * can parse TEXT as it is. Lines keep their numbers.
 */
char *yaml_input_from_json(const char *text, size_t *len);

/*
 * Refuse bytes that are not UTF-8, control characters, Unicode's own line breaks and %TAG: libyaml
 * would refuse such text, or parse it differently from what an editor shows. Return 0 or -EINVAL.
 */
int yaml_input_check(const char *text, size_t len, struct spec_errors *e);

/* Add the error of PARSER to E, in words for the author of the document TEXT. Return -EINVAL. */
int yaml_input_explain(const yaml_parser_t *parser, const char *text, size_t len,
		       struct spec_errors *e);

/* True if every YAML parser accepts C without an escape. False for line breaks and tabs. */
bool yaml_input_is_printable(uint32_t c);
