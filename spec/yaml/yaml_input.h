/* SPDX-License-Identifier: MIT */
/*
 * Checks the bytes of a document before libyaml parses it, and explains libyaml's errors to people.
 * Private to spec/yaml/.
 */
#pragma once

#include <yaml.h>

#include "spec/base/error.h"

/*
 * Refuse a file that is too large or in another encoding. On success *TEXT and *LEN exclude the
 * byte order mark. Return 0, -EINVAL or -EFBIG.
 */
int yaml_input_begin(const char **text, size_t *len, struct spec_errors *e);

/*
 * Convert JSON that YAML does not accept. JSON writes characters beyond U+FFFF as two escapes,
 * "\ud83d\ude00", may have unescaped characters that YAML wants escaped, and may be a stream of
 * maps without separators, as jq(1) writes it. Return a malloc'ed copy with the same lines (unless
 * two maps share one), and its length in *LEN; NULL if libyaml can parse TEXT as it is.
 */
char *yaml_input_from_json(const char *text, size_t *len);

/*
 * Refuse bytes that libyaml would refuse, or would read differently from what an editor shows:
 * bytes that are not UTF-8, control characters, Unicode's own line breaks, %TAG. Return 0 or
 * -EINVAL.
 */
int yaml_input_check(const char *text, size_t len, struct spec_errors *e);

/*
 * Add the error that stopped PARSER, in kxfs's own wording. TEXT is the parser's input. Return
 * -EINVAL.
 */
int yaml_input_explain(const yaml_parser_t *parser, const char *text, size_t len,
		       struct spec_errors *e);

/* True if C needs no escape in YAML text for any parser. Line breaks and tabs are not included. */
bool yaml_input_is_printable(uint32_t c);
