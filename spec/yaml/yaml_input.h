/* SPDX-License-Identifier: MIT */
/*
 * Checks the bytes of a document before libyaml parses it, and explains libyaml's errors to people.
 * Private to spec/yaml/.
 */
#pragma once

#include <yaml.h>

#include "spec/base/error.h"

/*
 * Refuse a file that is too large or in another encoding. On success *TEXT, *LEN are without
 * the byte order mark. 0, -EINVAL, -EFBIG.
 */
int yaml_input_begin(const char **text, size_t *len, struct spec_errors *e);

/*
 * JSON writes characters beyond U+FFFF as two escapes, "\ud83d\ude00", and may have characters as they are that YAML
 * wants escaped. In a stream of JSON maps, as jq(1) writes it, nothing separates them. If TEXT is JSON with such: a
 * copy (malloc'ed) as YAML has it, of the same lines unless two maps share one, and its length in *LEN. NULL if TEXT
 * can be read as it is.
 */
char *yaml_input_from_json(const char *text, size_t *len);

/*
 * Refuse bytes that libyaml would refuse, or that it reads otherwise than an editor shows them: bytes that are not
 * UTF-8, control characters, Unicode's own line breaks, %TAG. 0, -EINVAL.
 */
int yaml_input_check(const char *text, size_t len, struct spec_errors *e);

/* Add the error at which PARSER stopped, in our words; TEXT is what it read. -EINVAL. */
int yaml_input_explain(const yaml_parser_t *parser, const char *text, size_t len,
		       struct spec_errors *e);

/* True if C is valid unescaped in YAML text for every parser. (Not line breaks, not a tab.) */
bool yaml_input_is_printable(uint32_t c);
