/* SPDX-License-Identifier: MIT */
/*
 * Ready manifests: documents that are already an object for the cluster, written by hand or copied
 * from jobs/ID/manifest.yaml.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/yaml/yaml.h"

/* Return the kind of KNOWN that has the apiVersion and kind of the manifest ROOT, or NULL. */
const struct spec_kind *spec_ready_kind(const struct spec_kinds *known,
					const struct spec_yaml *root);

/*
 * Add an error: the manifest ROOT is of none of the N KINDS, and only these can be submitted WHERE.
 */
void spec_ready_refuse(const struct spec_yaml *root, const struct spec_kind *const *kinds, size_t n,
		       const char *where, struct spec_errors *e);

/*
 * Check the manifest ROOT for B's kind and identity. Make its object, without the fields that
 * others have added. Choose the object's name: the manifest's own name, its generateName with a
 * random suffix, or a new name if the identity has RENAME. Return 0, or the errno of B's errors,
 * which may have existed before.
 */
int spec_ready_read(const struct spec_yaml *root, struct spec_build *b);

/*
 * Remove the fields that the server, kxfs, controllers and their webhooks have added to OBJECT, as
 * far as they can be recognized. OBJECT is a manifest of KIND, whose metadata is a map. Fields that
 * a person has written remain.
 */
void spec_added_remove(struct json_object *object, const struct spec_kind *kind);
