/* SPDX-License-Identifier: MIT */
/*
 * Checks the bytes of a document before libyaml parses it, and explains libyaml's errors to people.
 * Private to spec/yaml/.
 */
#pragma once

#include <yaml.h>

#include "spec/base/error.h"

/*
 * Refuse a file that is too large, or that begins with the byte order mark of UTF-16 or UTF-32. If
 * the file begins with the byte order mark of UTF-8, move *TEXT past the mark and reduce *LEN.
 * Return 0, -EINVAL or -EFBIG.
 */
int yaml_input_begin(const char **text, size_t *len, struct spec_errors *e);

/*
 * Some JSON is not valid YAML. If TEXT is such JSON, convert it to YAML and return it (malloc'ed),
 * with the new length in *LEN. Return NULL if libyaml can parse TEXT as it is. JSON differs from
 * YAML in three ways. In JSON, two escapes may encode one character beyond U+FFFF: "\ud83d\ude00".
 * JSON may have unescaped characters that YAML requires to be escaped. And jq(1) writes several
 * maps without separators. The result has the same lines as TEXT, except where two maps were on one
 * line.
 */
char *yaml_input_from_json(const char *text, size_t *len);

/*
 * Refuse bytes that are not UTF-8, control characters, Unicode's own line breaks and %TAG: libyaml
 * would refuse such text, or parse it differently from what an editor shows. Return 0 or -EINVAL.
 */
int yaml_input_check(const char *text, size_t len, struct spec_errors *e);

/*
 * PARSER has stopped with an error. Add this error to E, with an explanation by kxfs as its text.
 * TEXT is the input of PARSER. Return -EINVAL.
 */
int yaml_input_explain(const yaml_parser_t *parser, const char *text, size_t len,
		       struct spec_errors *e);

/* True if every YAML parser accepts C without an escape. Line breaks and tabs count as false. */
bool yaml_input_is_printable(uint32_t c);
