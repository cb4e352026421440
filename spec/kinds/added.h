/* SPDX-License-Identifier: MIT */
/* What others add to a job's object, and a copy of it must not have. Private to spec/kinds. */
#pragma once

#include <json-c/json.h>

#include "spec/pods/kind.h"

/*
 * Take out of OBJECT, a manifest of KIND whose metadata is a map, what the server, kxfs, controllers and their webhooks
 * have added, as far as the object says who has. What a person has written into it stays.
 */
void spec_added_remove(struct json_object *object, const struct spec_kind *kind);
