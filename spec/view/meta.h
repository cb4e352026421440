/* SPDX-License-Identifier: MIT */
/* The metadata that all objects have in common. Private to spec/view. */
#pragma once

#include "spec/base/tree.h"
#include "spec/view/reader.h"

/* Fill M, which is zeroed or has texts of spec_set. 0; -EINVAL: the name or the uid is not one that can be shown. */
int spec_meta_read(const struct spec_value *object, struct spec_meta *m);
void spec_meta_clear(struct spec_meta *m);

/* The first of VERSIONS (which end with NULL) in JSON, the description of a group of the API; NULL: none is. */
const char *spec_meta_version(const char *json, size_t len, const char *const *versions);
