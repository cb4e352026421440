/* SPDX-License-Identifier: MIT */
/*
 * Which kubeconfig files there are, and the connection that they describe. These functions wait for the disk, so they
 * are called by the thread that starts kxfs, before the loop runs, and on the pool.
 */
#pragma once

#include "spec/api/kubeconfig.h"

/*
 * Load OPTION (a file; NULL or "": not given), else the files of $KUBECONFIG (of which some may be missing), else
 * ~/.kube/config, else the service account of the pod that kxfs runs in. CONTEXT is "" for the current one. Relative
 * paths are below DIR (NULL or "": the working directory). 0, or a negative errno with *RET_TEXT, which says which file
 * and line, what is wrong and what to do. *RET is to be cleared in any case.
 */
int kubeconfig_load(const char *option, const char *dir, const char *context,
		    struct spec_connection *ret, char **ret_text);

/*
 * The contexts that the same files name, as spec_kubeconfig_contexts gives them; none if there is no file, as in a pod.
 * 0, or a negative errno with *RET_TEXT.
 */
int kubeconfig_contexts(const char *option, char ***ret, char **ret_text);
