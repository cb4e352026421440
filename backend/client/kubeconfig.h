/* SPDX-License-Identifier: MIT */
/*
 * Finds the kubeconfig files and the connection in them. These functions wait for the disk: call
 * them before the loop runs, or on the pool.
 */
#pragma once

#include "spec/api/kubeconfig.h"

/*
 * Set *RET to the connection of CONTEXT ("": the current context) in the kubeconfig. OPTION is the
 * kubeconfig's path. If OPTION is NULL or "", use the files of $KUBECONFIG, some of which may be
 * missing. If $KUBECONFIG is unset or empty, use ~/.kube/config. If that file does not exist, use
 * the service account of the pod in which kxfs runs. Relative paths are below DIR (NULL or "": the
 * working directory).
 *
 * Return 0, or a negative errno with *RET_TEXT, malloc'ed, which names the file, the line, the
 * error and its remedy. The caller clears *RET in both cases.
 */
int kubeconfig_load(const char *option, const char *dir, const char *context,
		    struct spec_connection *ret, char **ret_text);

/*
 * Set *RET to the result of spec_kubeconfig_contexts; empty without a kubeconfig, as in a pod.
 * Return 0, or a negative errno with *RET_TEXT, malloc'ed.
 */
int kubeconfig_contexts(const char *option, char ***ret, char **ret_text);
