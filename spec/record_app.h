/* SPDX-License-Identifier: MIT */
/*
 * The AppDef within a record: what spec_app_json wrote is read back. Not with the reader of
 * submitted files, whose bounds hold for what people write: defaults filled in and aliases
 * expanded, the same AppDef may be larger. Private to spec/.
 */
#ifndef KXFS_SPEC_RECORD_APP_H
#define KXFS_SPEC_RECORD_APP_H

#include "spec/app.h"

struct json_object;

/* 0 and *RET; -EINVAL: not what spec_app_json writes; -ENOMEM. */
int spec_record_app(struct json_object *o, struct spec_app **ret);

#endif
