/* SPDX-License-Identifier: MIT */
/* Returns the versions of json-c and libyaml. */
#include "spec/yaml/libraries.h"

#include <json-c/json_c_version.h>
#include <yaml.h>

#include "spec/base/mem.h"

char *spec_libraries(void)
{
	return text_print("json-c %s, libyaml %s", json_c_version(), yaml_get_version_string());
}
