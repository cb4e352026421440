/* SPDX-License-Identifier: MIT */
/*
 * The last words of a failed program: the error in a file that TorchElastic wrote, or the last
 * printed lines. All of that comes from outside. These functions return at most five lines of
 * limited length, without a newline after the last, and clean for a terminal. malloc'ed.
 */
#pragma once

#include "spec/job/job.h"

/*
 * Return the last lines of the N bytes at TEXT; "" if they are blank. PART: the text before them is
 * omitted.
 */
char *spec_last_lines(const char *text, size_t n, bool part);
/*
 * Return the words of an error file of TorchElastic: the end of the stack trace, which ends with
 * the error; or, if the error itself is long, its first lines. NULL if it is not such a file.
 */
char *spec_last_error(const char *text, size_t n);
/* Return the log whose end has the last words of JOB, which has FAILED; or NULL. */
const struct spec_log *spec_last_log(const struct spec_job *job);
