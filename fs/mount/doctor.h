/* SPDX-License-Identifier: MIT */
/*
 * Reports of the command that need no mount. kxfs doctor prints the requirements of a mount of
 * SOURCE and their status, for users and for bug reports. It mounts nothing, changes nothing, and
 * contains no secrets.
 */
#pragma once

#include "fs/cli/options.h"

/* Print the report. Return the exit status: EXIT_SUCCESS if a mount would work. */
int doctor_main(const struct options *o);

/* --version: print the version, the loaded libraries and their features, the backends. */
void about_version(const struct options *o);

/*
 * --list-sources: print a line for each backend with its colon, then one for each context of the
 * kubeconfig with its namespace. Return 0, or a negative errno after an error message.
 */
int about_sources(const struct options *o);
