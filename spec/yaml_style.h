/* SPDX-License-Identifier: MIT */
/*
 * How a string can be written in YAML so that every reader takes it for that string.
 * Private to spec/yaml*.c.
 */
#ifndef KXFS_SPEC_YAML_STYLE_H
#define KXFS_SPEC_YAML_STYLE_H

#include "spec/base.h"

enum yaml_style { YAML_STYLE_PLAIN, YAML_STYLE_SINGLE, YAML_STYLE_DOUBLE };

/* The plainest style for TEXT on one line; FLOW: inside of [] or {}. */
enum yaml_style yaml_style_inline(const char *text, size_t len, bool flow);

/* Is a literal block lossless for TEXT, and easier to read? */
bool yaml_style_is_literal(const char *text, size_t len);

#endif
