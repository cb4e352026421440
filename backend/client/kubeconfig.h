/* SPDX-License-Identifier: MIT */
/*
 * Finds the kubeconfig files and the connection in them. These functions wait for the disk, so they
 * are called by the thread that starts kxfs, before the loop runs, and on the pool.
 */
#pragma once

#include "spec/api/kubeconfig.h"

/*
 * Load OPTION (a file; NULL or "": not given), else the files of $KUBECONFIG (some may be missing), else
 * ~/.kube/config, else the service account of the pod that kxfs runs in. CONTEXT is "" for the current one.
 * Relative paths are below DIR (NULL or "": the working directory). Return 0, or a negative errno with *RET_TEXT,
 * malloc'ed, which names file and line, the error and its remedy. The caller clears *RET in any case.
 */
int kubeconfig_load(const char *option, const char *dir, const char *context,
		    struct spec_connection *ret, char **ret_text);

/*
 * Set *RET to the contexts in the same files, as spec_kubeconfig_contexts does; without a file, as in a pod, the
 * list is empty. Return 0, or a negative errno with *RET_TEXT, malloc'ed.
 */
int kubeconfig_contexts(const char *option, char ***ret, char **ret_text);
