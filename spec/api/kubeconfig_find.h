/* SPDX-License-Identifier: MIT */
/* Searches kubeconfig files for the entries of a connection. Private to spec/api/. */
#pragma once

#include "spec/api/kubeconfig.h"
#include "spec/yaml/yaml.h"

/*
 * An entry NAME of the list of contexts, clusters or users. BODY is the map in it, or NULL if that
 * is empty. Everything is borrowed.
 */
struct kubeconfig_entry {
	const char *file;	      /* an absolute path */
	const struct spec_yaml *item; /* {name: NAME, KIND: body} */
	const struct spec_yaml *body;
};

/* Find the entry NAME of the KIND "context", "cluster" or "user". */
bool kubeconfig_find(const struct spec_kubeconfig *k, const char *kind, const char *name,
		     struct kubeconfig_entry *ret);

/* Return the name of the current context and the file that sets it; NULL if none does. */
const struct spec_yaml *kubeconfig_current(const struct spec_kubeconfig *k, const char **ret_file);

/*
 * Return the names of all contexts, borrowed, in an array that ends with NULL and that the caller
 * frees.
 */
const char **kubeconfig_names(const struct spec_kubeconfig *k);
