/* SPDX-License-Identifier: MIT */
/* Fields that others add to a job's object, and that a copy of it must not have. Private to spec/kinds. */
#pragma once

#include <json-c/json.h>

#include "spec/pods/kind.h"

/*
 * Take out of OBJECT, a manifest of KIND whose metadata is a map, the fields that the server, kxfs, controllers and
 * their webhooks have added, as far as the object shows who has added them. Fields that a person has written stay.
 */
void spec_added_remove(struct json_object *object, const struct spec_kind *kind);
