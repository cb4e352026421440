/* SPDX-License-Identifier: MIT */
/*
 * Commands that print reports and need no mount. kxfs doctor prints what a mount of SOURCE
 * requires, and whether these requirements are met. The report helps users, and they can attach it
 * to bug reports. It contains no secrets. The command changes nothing.
 */
#pragma once

#include "fs/cli/options.h"

/* kxfs doctor: print the report. Return EXIT_SUCCESS if a mount would work, else EXIT_FAILURE. */
int doctor_main(const struct options *o);

/* --version: print the version, the libraries, the features and the backends. */
void about_version(const struct options *o);

/*
 * --list-sources: print each backend, with its colon, on a line. Then print each context of the
 * kubeconfig, with its namespace, on a line. Return 0, or a negative errno after printing an error.
 */
int about_sources(const struct options *o);
