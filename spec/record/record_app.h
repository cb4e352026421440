/* SPDX-License-Identifier: MIT */
/*
 * The AppDef within a record: what spec_app_json wrote is read back. The reader of submitted files can't
 * do that, since its bounds are those of what people write: with defaults filled in and aliases expanded,
 * the same AppDef may be larger. Private to spec/record/.
 */
#ifndef KXFS_SPEC_RECORD_RECORD_APP_H
#define KXFS_SPEC_RECORD_RECORD_APP_H

#include "spec/app/app.h"

struct json_object;

/* 0 and *RET; -EINVAL: it is not what spec_app_json writes. */
int spec_record_app(struct json_object *o, struct spec_app **ret);

#endif
