/* SPDX-License-Identifier: MIT */
/*
 * The daemon's own messages. (In kxfs, "log" always means the output of a job.) Every message goes
 * into a bounded ring, which .kxfs/log shows. While kxfs starts, and while it runs in the
 * foreground, messages also go to standard error. A message must not contain credentials. A
 * function that returns an error does not also report it here (rule E2). Any thread may call these
 * functions. Public: fs/ also uses this header.
 */
#pragma once

#include "spec/base/base.h"

enum diag_level { DIAG_ERROR, DIAG_WARNING, DIAG_INFO, DIAG_DEBUG };

/*
 * From now on, drop messages less important than LEVEL. If TO_STDERR, also print to standard error.
 */
void diag_setup(enum diag_level level, bool to_stderr);

/* True if messages go to standard error. */
bool diag_to_stderr(void);

/*
 * Report a message as one line: replace each newline in it by " | ", and escape other control
 * characters. Preserve errno.
 */
void diag(enum diag_level level, const char *fmt, ...) printf_like(2, 3);

/* Return the ring's text, malloc'ed, oldest line first. Each line is "TIME LEVEL text\n". */
char *diag_text(size_t *ret_len);
