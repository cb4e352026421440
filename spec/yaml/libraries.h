/* SPDX-License-Identifier: MIT */
/* The libraries that parse JSON and YAML. */
#pragma once

/*
 * Return the versions of these libraries in this process: "json-c 0.16, libyaml 0.2.5". malloc'ed.
 */
char *spec_libraries(void);
