/* SPDX-License-Identifier: MIT */
/* The user who runs this command: the name in submissions, and the directory for "~". */
#pragma once

#include "spec/base/base.h"

/*
 * Set *SUBMITTER to "user@host"; *HOME to an absolute path, or NULL if unknown. Both are malloc'ed.
 */
void who_am_i(char **submitter, char **home);
