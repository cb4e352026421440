/* SPDX-License-Identifier: MIT */
/*
 * kxfs doctor: one report, to read or to attach to a report of a bug, of what a mount of SOURCE needs and what of that
 * there is. It mounts nothing, changes nothing, and tells no secret.
 */
#pragma once

#include "fs/cli/options.h"

/* Print the report. Returns what to exit with: EXIT_SUCCESS if a mount would work. */
int doctor_main(const struct options *o);
