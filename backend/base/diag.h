/* SPDX-License-Identifier: MIT */
/*
 * The daemon's own messages, which .kxfs/log shows. ("log" always means the output of a job.) A
 * message must not contain credentials. Any thread. Public: fs/ also uses this header.
 */
#pragma once

#include "spec/base/base.h"

enum diag_level { DIAG_ERROR, DIAG_WARNING, DIAG_INFO, DIAG_DEBUG };

/* Drop messages less important than LEVEL. If TO_STDERR, also print messages to standard error. */
void diag_setup(enum diag_level level, bool to_stderr);

bool diag_to_stderr(void);

/*
 * Report a message on one line. Replace newlines by " | ", and escape control characters. Preserve
 * errno.
 */
void diag(enum diag_level level, const char *fmt, ...) printf_like(2, 3);

/* Return the ring's text, malloc'ed, oldest line first. Each line is "TIME LEVEL text\n". */
char *diag_text(size_t *ret_len);
