/* SPDX-License-Identifier: MIT */
/* Information of the command about itself, and about possible sources, without a mount. */
#pragma once

struct options;

/* --version: print the version, the loaded libraries and their features, the backends. */
void about_version(const struct options *o);

/*
 * --list-sources: print a line for each backend with its colon, then one for each context of the
 * kubeconfig with its namespace. Return 0, or a negative errno after an error message.
 */
int about_sources(const struct options *o);
