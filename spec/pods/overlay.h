/* SPDX-License-Identifier: MIT */
/*
 * The pod overlay, in role.metadata.kubernetes of an AppDef, sets what an AppDef can't express in a
 * role's pods. Later versions of TorchX read the same format. Pure.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/error.h"

/*
 * Find the overlay in METADATA of the role at PATH. "kubernetes" is {V1Pod: OVERLAY}, or OVERLAY
 * itself with the members metadata and spec. Set *RET to the overlay, which METADATA owns, or to
 * NULL, and *RET_PATH to its path (malloc'ed). Return 0, or the errno of the errors in E.
 */
int spec_overlay_find(struct json_object *metadata, const char *path, struct json_object **ret,
		      char **ret_path, struct spec_errors *e);

/*
 * Return OVERLAY applied to BASE; both remain unchanged. Merge maps, append lists, and replace
 * other values; null removes a member. Combining a map or list with another type is an error. An
 * operator in a key replaces the value ("__put__:"), removes it ("__del__:"), or joins two lists by
 * a key field ("__join__:").
 *
 * *RET shares parts of BASE and OVERLAY. The caller may change only its top level and its members
 * "metadata" and "spec". PATH is the overlay's path, for errors in E.
 */
int spec_overlay_apply(struct json_object *base, struct json_object *overlay, const char *path,
		       struct json_object **ret, struct spec_errors *e);
