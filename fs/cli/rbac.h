/* SPDX-License-Identifier: MIT */
/* kxfs doctor --rbac: the Role that a mount needs. */
#pragma once

#include <stdio.h>

#include "fs/cli/options.h"

/*
 * Print the rights of a mount with O as a Role; those to resources outside of namespaces as a
 * ClusterRole. kxfs does not ask the cluster, so the Role includes all kinds that SOURCE may mean.
 */
void rbac_print(const struct options *o, FILE *out);
