/* SPDX-License-Identifier: MIT */
/*
 * One object of a cluster, as a server sends it: its text as YAML, and what kxfs wrote into it, read
 * back. Anybody may have changed that since.
 */
#ifndef KXFS_SPEC_API_OBJECT_H
#define KXFS_SPEC_API_OBJECT_H

#include "spec/base/base.h"

/* Was the object made by the write SUBMISSION (annotation kxfs/submission)? */
bool spec_object_is_submission(const char *json, size_t len, const char *submission);

/*
 * The uid of the first object of a list ("items"); "": it has none. 0 and a malloc'ed *RET; -EINVAL: it is no list.
 */
int spec_object_listed_uid(const char *json, size_t len, char **ret);

/*
 * The AppDef in annotation kxfs/appdef. 0 and a malloc'ed, NUL-terminated *RET; -ENOENT: it has none;
 * -EINVAL.
 */
int spec_object_appdef(const char *json, size_t len, char **ret, size_t *ret_len);

/*
 * The object without its managedFields as YAML, for manifest.yaml. 0 and a malloc'ed, NUL-terminated
 * *RET; -EINVAL.
 */
int spec_object_yaml(const char *json, size_t len, char **ret, size_t *ret_len);

#endif
