/* SPDX-License-Identifier: MIT */
/*
 * The pod overlay: what an AppDef adds to the pods of a role beyond TorchX's fields, in
 * role.metadata.kubernetes, as later versions of TorchX read it. Pure functions on JSON values.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/error.h"

/*
 * Find the overlay in METADATA (a role's, parsed): {V1Pod: OVERLAY} or OVERLAY itself, a map of metadata and spec. *RET
 * is a part of METADATA, *RET_PATH (malloc'ed) its path; NULL: there is none. PATH is the role's; errors go to E.
 */
int spec_overlay_find(struct json_object *metadata, const char *path, struct json_object **ret,
		      char **ret_path, struct spec_errors *e);

/*
 * Apply OVERLAY to BASE: maps are merged, lists appended, anything else replaced (null removes); a map and a list never
 * meet another type. Keys that begin with __put__:, __del__: and __join__: replace, remove and join by a key field.
 * Neither argument changes; *RET shares parts of both and is not to be changed either, but for its top level and its
 * members "metadata" and "spec", which are its own. PATH is the overlay's; errors go to E.
 */
int spec_overlay_apply(struct json_object *base, struct json_object *overlay, const char *path,
		       struct json_object **ret, struct spec_errors *e);
