/* SPDX-License-Identifier: MIT */
/*
 * Finds the kubeconfig files and the connection in them. These functions wait for the disk, so they
 * are called by the thread that starts kxfs, before the loop runs, and on the pool.
 */
#pragma once

#include "spec/api/kubeconfig.h"

/*
 * Load OPTION (a file; NULL or "": not given), else the files of $KUBECONFIG (some may be missing),
 * else ~/.kube/config, else the service account of the pod that kxfs runs in. CONTEXT is "" for the
 * current one. Relative paths are below DIR (NULL or "": the working directory). Return 0, or a
 * negative errno with *RET_TEXT, which names file and line, the error and its remedy. Clear *RET in
 * any case.
 */
int kubeconfig_load(const char *option, const char *dir, const char *context,
		    struct spec_connection *ret, char **ret_text);

/*
 * Return the contexts in the same files, as spec_kubeconfig_contexts does; none without a file, as
 * in a pod. 0, or a negative errno with *RET_TEXT.
 */
int kubeconfig_contexts(const char *option, char ***ret, char **ret_text);
