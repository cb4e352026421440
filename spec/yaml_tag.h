/* SPDX-License-Identifier: MIT */
/*
 * What an explicit tag says of a value. Private to spec/yaml*.c.
 */
#ifndef KXFS_SPEC_YAML_TAG_H
#define KXFS_SPEC_YAML_TAG_H

#include "spec/yaml.h"

/*
 * Check TAG (as libyaml gives it; NULL: none) of NODE, and set whether it is plain by it. 0, also if it does not
 * fit (an error in E that does not end the reading); -ENOMEM.
 */
int yaml_tag_check(struct spec_yaml *node, const char *tag, struct spec_errors *e);

#endif
