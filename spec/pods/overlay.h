/* SPDX-License-Identifier: MIT */
/*
 * The pod overlay, in role.metadata.kubernetes of an AppDef, sets fields of a role's pods that an
 * AppDef can't express. Later versions of TorchX read it in the same way. Pure functions on JSON
 * values.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/error.h"

/*
 * Find the overlay of the role at PATH, whose parsed metadata is METADATA. The member "kubernetes"
 * is either {V1Pod: OVERLAY}, or OVERLAY itself with the members metadata and spec. Set *RET to the
 * overlay (a part of METADATA) and *RET_PATH to its path (malloc'ed), or *RET to NULL if there is
 * none. Return 0, or the errno of the errors that were added to E.
 */
int spec_overlay_find(struct json_object *metadata, const char *path, struct json_object **ret,
		      char **ret_path, struct spec_errors *e);

/*
 * Apply OVERLAY to BASE, without changing either. Merge maps, append lists, replace other values,
 * and remove members whose value in OVERLAY is null. Combining a map or a list with a value of
 * another type is an error. A key may begin with an operator: "__put__:" replaces the value,
 * "__del__:" removes it, and "__join__:" joins two lists by a key field.
 *
 * *RET shares parts of BASE and OVERLAY. The caller may change only its top level and its members
 * "metadata" and "spec". PATH is the overlay's path. Errors are added to E.
 */
int spec_overlay_apply(struct json_object *base, struct json_object *overlay, const char *path,
		       struct json_object **ret, struct spec_errors *e);
