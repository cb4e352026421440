/* SPDX-License-Identifier: MIT */
/* Names the libraries that parse JSON and YAML. */
#pragma once

/* Return the versions of json-c and libyaml in use, malloc'ed: "json-c 0.16, libyaml 0.2.5". */
char *spec_libraries(void);
