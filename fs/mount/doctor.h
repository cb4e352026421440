/* SPDX-License-Identifier: MIT */
/*
 * kxfs doctor: one report, for users and for bug reports, of the requirements of a mount of SOURCE
 * and their status. It mounts nothing, changes nothing, and contains no secrets.
 */
#pragma once

#include "fs/cli/options.h"

/* Print the report. Return the exit status: EXIT_SUCCESS if a mount would work. */
int doctor_main(const struct options *o);
