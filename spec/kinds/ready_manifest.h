/* SPDX-License-Identifier: MIT */
/*
 * Ready manifests: documents that already are objects for a cluster, written by the user or copied
 * from jobs/ID/manifest.yaml.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/yaml/yaml.h"

/* Return the kind in KNOWN with the apiVersion and kind of the manifest ROOT, or NULL. */
const struct spec_kind *spec_ready_kind(const struct spec_kinds *known,
					const struct spec_yaml *root);

/* Add an error: the kind of the manifest ROOT can't be submitted, but the N KINDS can. */
void spec_ready_refuse(const struct spec_yaml *root, const struct spec_kind *const *kinds, size_t n,
		       struct spec_errors *e);

/*
 * Make B's object from the manifest ROOT, without the fields that others have added. The object
 * keeps the manifest's name, unless RENAME of the identity is set: then it gets a new name. If the
 * manifest has only a generateName, append a random suffix to it. Return 0, or the errno of B's
 * errors, which may be from earlier calls.
 */
int spec_ready_read(const struct spec_yaml *root, struct spec_build *b);

/*
 * Remove the fields that the server, kxfs, controllers and webhooks have added to OBJECT, a
 * manifest of KIND whose metadata is a map. Keep fields that a person might have written.
 */
void spec_added_remove(struct json_object *object, const struct spec_kind *kind);
