/* SPDX-License-Identifier: MIT */
/*
 * What a program has said last before it failed: the error that it has left in a file, as TorchElastic does, or the
 * last lines that it has printed. All of that is from outside; what these functions return is at most five lines of
 * limited length, without a newline behind the last, and clean for a terminal. malloc'ed.
 */
#pragma once

#include "spec/job/job.h"

/* The last lines of the N bytes at TEXT; "" if these say nothing. PART: what is before them is left out. */
char *spec_last_lines(const char *text, size_t n, bool part);
/*
 * What an error file of TorchElastic says: the end of the stack of calls, which ends with the error, or if the error is
 * long itself, its first lines. NULL: it is none.
 */
char *spec_last_error(const char *text, size_t n);
/* The log in whose end the last words of a job that has FAILED stand; NULL: there is none. */
const struct spec_log *spec_last_log(const struct spec_job *job);
