/* SPDX-License-Identifier: MIT */
/* Errors with a text: an errno for the program and a sentence for people, in one return. */
#pragma once

#include "spec/base/base.h"

/*
 * Set *RET_TEXT (malloc'ed) to the error and its remedy, without a newline. Return ERR, for "return
 * refuse(-EINVAL, ret_text, ...)".
 */
int refuse(int err, char **ret_text, const char *fmt, ...) printf_like(3, 4);

/*
 * Print TEXT, which may quote a server or a plugin, for the user who gave the command. NULL: print
 * the text of ERR.
 */
void refuse_print(int err, const char *text);
