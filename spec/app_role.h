/* SPDX-License-Identifier: MIT */
/*
 * The roles of an AppDef: their fields, and the checks within one role. Private to spec/app*.c.
 */
#ifndef KXFS_SPEC_APP_ROLE_H
#define KXFS_SPEC_APP_ROLE_H

#include "spec/app_value.h"

extern const struct app_field app_role_fields[];
extern const struct app_field app_resource_fields[];

/* Read NODE into ROLE, which is empty. */
void app_read_role(struct app_reader *r, const struct app_path *path, const struct spec_yaml *node,
		   struct spec_role *role);

/* Release what ROLE holds. */
void app_clear_role(struct spec_role *role);
void app_clear_map(struct spec_map *map);

#endif
