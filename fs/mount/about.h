/* SPDX-License-Identifier: MIT */
/* What the command tells of itself, and of what could be mounted, without a mount. */
#pragma once

struct options;

/* --version: print the version, the libraries that this process runs with, what these can do, the backends. */
void about_version(const struct options *o);

/*
 * --list-sources: print a line for each backend with its colon, then one for each context of the kubeconfig with its
 * namespace. 0, or a negative errno after a message that says what is wrong.
 */
int about_sources(const struct options *o);
