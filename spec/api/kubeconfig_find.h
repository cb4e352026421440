/* SPDX-License-Identifier: MIT */
/* Searches kubeconfig files for the entries of a connection. Private to spec/api/. */
#pragma once

#include "spec/api/kubeconfig.h"
#include "spec/yaml/yaml.h"

/* A context, cluster or user. The kubeconfig owns all members. */
struct kubeconfig_entry {
	const char *file;	      /* an absolute path */
	const struct spec_yaml *item; /* {name: NAME, KIND: BODY} */
	const struct spec_yaml *body; /* NULL if the entry has no map for KIND */
};

/* Find the entry NAME of KIND ("context", "cluster" or "user"). Return false if there is none. */
bool kubeconfig_find(const struct spec_kubeconfig *k, const char *kind, const char *name,
		     struct kubeconfig_entry *ret);

/*
 * Return the YAML node of the value of `current-context`, and set *RET_FILE to the file that has it.
 * Return NULL if no file has this key.
 */
const struct spec_yaml *kubeconfig_current(const struct spec_kubeconfig *k, const char **ret_file);

/* Return the distinct names of all contexts, ending with NULL. The caller frees only the array. */
const char **kubeconfig_names(const struct spec_kubeconfig *k);
