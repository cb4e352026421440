/* SPDX-License-Identifier: MIT */
/*
 * The daemon's own messages ("log" always means a job's output). A message is written to standard error at start-up
 * and in the foreground, and into a bounded ring, which .kxfs/log shows. A message must not contain credentials. A
 * function that returns an error does not also report it here (rule E2). Any thread. Public: fs/ uses it too.
 */
#pragma once

#include "spec/base/base.h"

enum diag_level { DIAG_ERROR, DIAG_WARNING, DIAG_INFO, DIAG_DEBUG };

/* Drop messages above LEVEL. TO_STDERR: write messages to standard error too. */
void diag_setup(enum diag_level level, bool to_stderr);

/* True if messages go to standard error. */
bool diag_to_stderr(void);

/*
 * Report one message, which becomes one line: newlines in it become " | ", and other control characters are
 * escaped. errno is not changed.
 */
void diag(enum diag_level level, const char *fmt, ...) printf_like(2, 3);

/* Return the text of the ring, oldest line first: "TIME LEVEL text\n". malloc'ed. */
char *diag_text(size_t *ret_len);
