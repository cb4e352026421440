/* SPDX-License-Identifier: MIT */
/*
 * kxfs doctor: one report, to read or to attach to a bug, of what a mount of SOURCE needs and what there is. It mounts
 * nothing, changes nothing, and no secret is in it.
 */
#pragma once

#include "fs/cli/options.h"

/* Print it. What to exit with: EXIT_SUCCESS when a mount would work. */
int doctor_main(const struct options *o);
