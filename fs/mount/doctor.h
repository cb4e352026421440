/* SPDX-License-Identifier: MIT */
/*
 * Commands that print reports, need no mount, and change nothing. kxfs doctor prints what a mount
 * of SOURCE requires, and which of these requirements are not met. Users can attach this report to
 * bug reports: it has no secrets.
 */
#pragma once

#include "fs/cli/options.h"

/* kxfs doctor. Return EXIT_SUCCESS if a mount would work, else EXIT_FAILURE. */
int doctor_main(const struct options *o);

/* --version: print the version, the libraries, the features and the backends. */
void about_version(const struct options *o);

/*
 * --list-sources: print each backend with its colon, one on a line. Then print each context of the
 * kubeconfig with its namespace. Return 0, or a negative errno after printing an error.
 */
int about_sources(const struct options *o);
