/* SPDX-License-Identifier: MIT */
/* Prepares a document's bytes for libyaml, and explains libyaml's errors. Private to spec/yaml/. */
#pragma once

#include <yaml.h>

#include "spec/base/error.h"

/*
 * Add an error if the file is too large, or if it is encoded in UTF-16 or UTF-32. Otherwise skip a
 * byte order mark. Return 0, -EINVAL or -EFBIG.
 */
int yaml_input_begin(const char **text, size_t *len, struct spec_errors *e);

/*
 * If TEXT is JSON, but not valid YAML, return it as YAML (malloc'ed), and set *LEN. Line numbers
 * remain the same. The differences are surrogate pairs ("\ud83d\ude00"), and characters that must
 * be escaped in YAML. Return NULL if no conversion is needed, or if TEXT is not JSON.
 */
char *yaml_input_from_json(const char *text, size_t *len);

/*
 * Add an error if TEXT has bytes that are not UTF-8, control characters, line breaks that only
 * Unicode has, or %TAG. libyaml would refuse some of these, and others look different in an editor.
 * Return 0 or -EINVAL.
 */
int yaml_input_check(const char *text, size_t len, struct spec_errors *e);

/* Explain the error of PARSER to the author of the document TEXT: add it to E. Return -EINVAL. */
int yaml_input_explain(const yaml_parser_t *parser, const char *text, size_t len,
		       struct spec_errors *e);

/* True if every YAML parser accepts C without an escape. False for line breaks and tabs. */
bool yaml_input_is_printable(uint32_t c);
