/* SPDX-License-Identifier: MIT */
/*
 * Finds the kubeconfig files and the connection in them. These functions wait for the disk. Call
 * them before the loop runs, on the thread that starts kxfs, or on the pool.
 */
#pragma once

#include "spec/api/kubeconfig.h"

/*
 * Set *RET to the connection of CONTEXT ("": the current context) in the kubeconfig. The kubeconfig
 * is the file OPTION. If OPTION is NULL or "", the kubeconfig consists of the files of $KUBECONFIG,
 * some of which may be missing. If this variable is not set, the kubeconfig is ~/.kube/config. If
 * that file does not exist, use the service account of the pod in which kxfs runs. Relative paths
 * are below DIR (NULL or "": the working directory).
 *
 * Return 0, or a negative errno with *RET_TEXT, malloc'ed. The text names the file, the line, the
 * error and its remedy. The caller clears *RET in both cases.
 */
int kubeconfig_load(const char *option, const char *dir, const char *context,
		    struct spec_connection *ret, char **ret_text);

/*
 * Set *RET to the contexts in the kubeconfig that kubeconfig_load finds, as
 * spec_kubeconfig_contexts does. If there is no kubeconfig, as in a pod, the list is empty. Return
 * 0, or a negative errno with *RET_TEXT, malloc'ed.
 */
int kubeconfig_contexts(const char *option, char ***ret, char **ret_text);
