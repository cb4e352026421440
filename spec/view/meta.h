/* SPDX-License-Identifier: MIT */
/* The metadata common to all objects. Private to spec/view. */
#pragma once

#include "spec/base/tree.h"
#include "spec/view/reader.h"

/*
 * Fill M, which is zeroed or has texts of spec_set. Return 0, or -EINVAL if the name or the uid
 * can't be shown.
 */
int spec_meta_read(const struct spec_value *object, struct spec_meta *m);
/* True if TEXT can be the uid of an object. */
bool spec_meta_is_uid(const char *text);
void spec_meta_clear(struct spec_meta *m);

/*
 * Return the first of VERSIONS (which end with NULL) in JSON, the description of an API group, or
 * NULL.
 */
const char *spec_meta_version(const char *json, size_t len, const char *const *versions);
