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
 * it begins with the byte order mark of UTF-8, move *TEXT and *LEN past the mark. Return 0, -EINVAL
 * or -EFBIG.
 */
int yaml_input_begin(const char **text, size_t *len, struct spec_errors *e);

/*
 * If TEXT is JSON that is not valid YAML, return it converted to YAML (malloc'ed), with the new
 * length in *LEN. Return NULL if libyaml can parse TEXT as it is. JSON differs in three ways. One
 * character beyond U+FFFF may be two escapes: "\ud83d\ude00". Characters that YAML requires to be
 * escaped may be unescaped. And jq(1) writes several maps without separators. The result has the
 * same lines as TEXT, except where two maps were on one line.
 */
char *yaml_input_from_json(const char *text, size_t *len);

/*
 * Refuse text that libyaml would refuse, or would parse differently from what an editor shows: text
 * with bytes that are not UTF-8, control characters, Unicode's own line breaks or %TAG. Return 0 or
 * -EINVAL.
 */
int yaml_input_check(const char *text, size_t len, struct spec_errors *e);

/*
 * Add the error that stopped PARSER. Its text is an explanation by kxfs. TEXT is the input of
 * PARSER. Return -EINVAL.
 */
int yaml_input_explain(const yaml_parser_t *parser, const char *text, size_t len,
		       struct spec_errors *e);

/* True if no YAML parser requires C to be escaped. False for line breaks and tabs. */
bool yaml_input_is_printable(uint32_t c);
