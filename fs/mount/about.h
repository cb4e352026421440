/* SPDX-License-Identifier: MIT */
/* What the command says of itself and of what could be mounted, without a mount. */
#pragma once

struct options;

/* --version: the version, the libraries that this process runs with, what those can do, the backends. */
void about_version(void);

/*
 * --list-sources: a line for each backend with its colon, then one for each context of the kubeconfig with
 * its namespace. 0, or a negative errno after saying what is wrong.
 */
int about_sources(const struct options *o);
