/* SPDX-License-Identifier: MIT */
/* Names in submit/ and dryrun/: which of them users may make, and which are verdicts. Pure. */
#pragma once

#include <limits.h>

#include "spec/base/base.h"

#define SUBMIT_JOB_SUFFIX   ".job"
#define SUBMIT_ERROR_SUFFIX ".error"

enum submit_name { SUBMIT_NAME_FILE, SUBMIT_NAME_JOB, SUBMIT_NAME_ERROR };

/* May a user make a file of this name? 0; or -EINVAL, -ENAMETOOLONG, -EPERM (the name of a verdict). */
int submit_name_check(const char *name);
/* What NAME stands for. If it is a verdict, *RET_BASE is the name on which it is. */
enum submit_name submit_name_kind(const char *name, char ret_base[NAME_MAX + 1]);

/*
 * NAME does not submit. Is it one that an editor or another program gives to a file on its way ("4913", "sedX3k9dw",
 * "app.yaml.1f3a", "app.yaml~", "tmp.x")?
 */
bool submit_name_is_passing(const char *name);
