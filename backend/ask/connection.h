/* SPDX-License-Identifier: MIT */
/* Finds the connection in the options of a mount. */
#pragma once

#include "backend/backend.h"
#include "spec/api/kubeconfig.h"

/* Read the kubeconfig that CONFIG names. Return 0, or a negative errno with *RET_TEXT. */
int connection_load(const struct backend_config *config, struct spec_connection *ret,
		    char **ret_text);
