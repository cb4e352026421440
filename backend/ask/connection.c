/* SPDX-License-Identifier: MIT */
/* Makes the connection of a mount: that of its kubeconfig, changed by SOURCE and options. */
#include "backend/ask/connection.h"

#include "backend/client/kubeconfig.h"
#include "spec/base/mem.h"

int connection_load(const struct backend_config *config, struct spec_connection *ret,
		    char **ret_text)
{
	int err = kubeconfig_load(config->kubeconfig, config->work_dir, config->context, ret,
				  ret_text);

	if (!err && *config->namespace)
		text_set(&ret->namespace, "%s", config->namespace);
	if (!err && *config->as)
		text_set(&ret->as, "%s", config->as);
	return err;
}
