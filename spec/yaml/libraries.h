/* SPDX-License-Identifier: MIT */
/* The libraries that parse texts. */
#pragma once

/* Return their versions in this process: "json-c 0.16, libyaml 0.2.5". malloc'ed. */
char *spec_libraries(void);
