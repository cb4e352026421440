/* SPDX-License-Identifier: MIT */
/* Which libraries texts are read with. */
#pragma once

/* "json-c 0.16, libyaml 0.2.5", as this process has them; malloc'ed. */
char *spec_libraries(void);
