/* SPDX-License-Identifier: MIT */
/*
 * Fields that others add to a job's object, and that a copy must not have. Private to spec/kinds.
 */
#pragma once

#include <json-c/json.h>

#include "spec/pods/kind.h"

/*
 * Remove the fields that the server, kxfs, controllers and their webhooks have added to OBJECT, as
 * far as they can be recognized. OBJECT is a manifest of KIND, whose metadata is a map. Fields that
 * a person has written remain.
 */
void spec_added_remove(struct json_object *object, const struct spec_kind *kind);
