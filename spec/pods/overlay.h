/* SPDX-License-Identifier: MIT */
/*
 * The pod overlay: additions of an AppDef to the pods of a role beyond TorchX's fields, in
 * role.metadata.kubernetes, as later versions of TorchX read it. Pure functions on JSON values.
 */
#pragma once

#include <json-c/json.h>

#include "spec/base/error.h"

/*
 * Find the overlay in METADATA (a role's, parsed): {V1Pod: OVERLAY} or OVERLAY itself, a map of
 * metadata and spec. *RET is a part of METADATA or NULL, *RET_PATH (malloc'ed) its path. PATH is
 * the role's; errors are added to E.
 */
int spec_overlay_find(struct json_object *metadata, const char *path, struct json_object **ret,
		      char **ret_path, struct spec_errors *e);

/*
 * Apply OVERLAY to BASE: maps are merged, lists appended, anything else replaced (null removes). A
 * map or a list can't be combined with another type. Keys that begin with __put__:, __del__: and
 * __join__: replace, remove and join by a key field. Neither argument changes. *RET shares parts of
 * both and must not be changed, except its top level and its members "metadata" and "spec", which
 * are its own. PATH is the overlay's; errors are added to E.
 */
int spec_overlay_apply(struct json_object *base, struct json_object *overlay, const char *path,
		       struct json_object **ret, struct spec_errors *e);
