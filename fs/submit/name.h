/* SPDX-License-Identifier: MIT */
/* Names in submit/ and dryrun/: which of them users may make, and which are results (NAME.job, NAME.error). Pure. */
#pragma once

#include <limits.h>

#include "spec/base/base.h"

#define SUBMIT_JOB_SUFFIX   ".job"
#define SUBMIT_ERROR_SUFFIX ".error"

enum submit_name { SUBMIT_NAME_FILE, SUBMIT_NAME_JOB, SUBMIT_NAME_ERROR };

/* Check if a user may make a file of this name. 0; or -EINVAL, -ENAMETOOLONG, -EPERM (the name of a result). */
int submit_name_check(const char *name);
/* Return what NAME is. If it is the result of a file, *RET_BASE is the name of that. */
enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1]);

/*
 * True if NAME, which does not submit, is a temporary name of an editor or another program ("4913", "sedX3k9dw",
 * "app.yaml.1f3a", "app.yaml~", "tmp.x").
 */
bool submit_name_is_passing(const char *name);
