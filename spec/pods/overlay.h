/* SPDX-License-Identifier: MIT */
/*
 * Applies the pod overlay, which is in role.metadata.kubernetes of an AppDef. It changes fields of
 * a role's pods for which an AppDef has no field of its own. Later versions of TorchX read it in
 * the same way. Pure functions on JSON values.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/error.h"

/*
 * Find the overlay in METADATA, the parsed metadata of the role at PATH. Its member "kubernetes" is
 * either {V1Pod: OVERLAY} or the OVERLAY itself, which has members metadata and spec. Set *RET to
 * the overlay, a part of METADATA, and *RET_PATH to its path (malloc'ed); or *RET to NULL if there
 * is none. Add errors to E, and return 0 or their errno.
 */
int spec_overlay_find(struct json_object *metadata, const char *path, struct json_object **ret,
		      char **ret_path, struct spec_errors *e);

/*
 * Apply OVERLAY to BASE, without changing either. Merge maps, append lists, replace all other
 * values, and remove a member whose new value is null. Combining a map or a list with a value of
 * another type is an error. A key with an operator differs: "__put__:" replaces, "__del__:"
 * removes, and "__join__:" joins two lists by a key field.
 *
 * *RET shares parts of BASE and OVERLAY. So only its top level and its members "metadata" and
 * "spec" may be changed. PATH is the overlay's path. Errors are added to E.
 */
int spec_overlay_apply(struct json_object *base, struct json_object *overlay, const char *path,
		       struct json_object **ret, struct spec_errors *e);
