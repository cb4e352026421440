/* SPDX-License-Identifier: MIT */
/*
 * The last words of a program that has failed: the error that it has left in a file, as TorchElastic does, or the last
 * lines that it has printed. All of that is from outside; these functions return at most five lines of limited length,
 * without a newline behind the last, and clean for a terminal. malloc'ed.
 */
#pragma once

#include "spec/job/job.h"

/* The last lines of the N bytes at TEXT; "" if these say nothing. PART: the text before them is left out. */
char *spec_last_lines(const char *text, size_t n, bool part);
/*
 * The words of an error file of TorchElastic: the end of the stack of calls, which ends with the error; or, if the
 * error itself is long, its first lines. NULL: it is no such file.
 */
char *spec_last_error(const char *text, size_t n);
/* The log at whose end the last words of JOB stand, which has FAILED; NULL: there is none. */
const struct spec_log *spec_last_log(const struct spec_job *job);
