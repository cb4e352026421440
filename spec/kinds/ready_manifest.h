/* SPDX-License-Identifier: MIT */
/*
 * Ready manifests: documents that are an object for the cluster already, written by hand or read from
 * jobs/ID/manifest.yaml.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/yaml/yaml.h"

/* The kind of KNOWN that the manifest ROOT is of, by its apiVersion and kind; NULL: none. */
const struct spec_kind *spec_ready_kind(const struct spec_kinds *known,
					const struct spec_yaml *root);

/* Add the error that the manifest ROOT is none of KINDS (N of them), the only ones that can be submitted WHERE. */
void spec_ready_refuse(const struct spec_yaml *root, const struct spec_kind *const *kinds, size_t n,
		       const char *where, struct spec_errors *e);

/*
 * Check the manifest ROOT for B's kind and identity, and make its object without what others have added, and its name.
 * The name is the manifest's own, or a random one after its generateName; or another one, if the identity wants that.
 * 0, or the errno of B's errors, which it may have had before.
 */
int spec_ready_read(const struct spec_yaml *root, struct spec_build *b);
