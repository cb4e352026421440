/* SPDX-License-Identifier: MIT */
/* Who runs this command: the name in submissions, and the directory that "~" means. */
#pragma once

#include "spec/base/base.h"

/* *SUBMITTER is "user@host"; *HOME an absolute path, or NULL: unknown. Both are malloc'ed. */
void who_am_i(char **submitter, char **home);
