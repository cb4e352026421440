/* SPDX-License-Identifier: MIT */
/*
 * Applies the pod overlay, which is in role.metadata.kubernetes of an AppDef. The overlay changes
 * fields of a role's pods for which an AppDef has no field of its own. Later versions of TorchX
 * read it in the same way. Pure functions on JSON values.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/error.h"

/*
 * Find the overlay of the role at PATH. METADATA is the parsed metadata of this role. Its member
 * "kubernetes" is either {V1Pod: OVERLAY} or the OVERLAY itself, which has members metadata and
 * spec. If there is an overlay, set *RET to it (a part of METADATA), and *RET_PATH to its path
 * (malloc'ed). Otherwise set *RET to NULL. Return 0. If there are errors, add them to E and return
 * their errno.
 */
int spec_overlay_find(struct json_object *metadata, const char *path, struct json_object **ret,
		      char **ret_path, struct spec_errors *e);

/*
 * Apply OVERLAY to BASE, without changing either. Merge maps, append lists, and replace all other
 * values. If a value in OVERLAY is null, remove the member. Combining a map or a list with a value
 * of another type is an error. A key may begin with an operator: "__put__:" replaces the value,
 * "__del__:" removes it, and "__join__:" joins two lists by a key field.
 *
 * *RET shares parts of BASE and OVERLAY. So the caller may only change the top level of *RET and
 * its members "metadata" and "spec". PATH is the overlay's path. Errors are added to E.
 */
int spec_overlay_apply(struct json_object *base, struct json_object *overlay, const char *path,
		       struct json_object **ret, struct spec_errors *e);
