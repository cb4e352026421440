/* SPDX-License-Identifier: MIT */
/* Finds the connection that the options of a mount mean. */
#pragma once

#include "backend/backend.h"
#include "spec/api/kubeconfig.h"

/* Read the kubeconfig that CONFIG names. 0, or a negative errno with *RET_TEXT. */
int connection_load(const struct backend_config *config, struct spec_connection *ret,
		    char **ret_text);
