/* SPDX-License-Identifier: MIT */
/*
 * The keys of maps: that they are usable and unique, and what "<<" merges into a map.
 * Private to spec/yaml*.c.
 */
#ifndef KXFS_SPEC_YAML_MERGE_H
#define KXFS_SPEC_YAML_MERGE_H

#include "spec/yaml.h"

/*
 * Check the keys of one map as it was read. 0: each is text, though perhaps one stands twice
 * (an error in E that does not end the reading); -EINVAL: one is not text; -ENOMEM.
 */
int yaml_merge_check_keys(const struct spec_yaml *map, struct spec_errors *e);

/*
 * Replace the merge keys of all maps under ROOT by what they merge. 0, also if one merges what
 * is no map (an error in E); -ENOMEM.
 */
int yaml_merge(struct spec_yaml *root, struct spec_errors *e);

#endif
