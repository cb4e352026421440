/* SPDX-License-Identifier: MIT */
/*
 * Ready manifests: documents that already are objects for the cluster. The user has written such a
 * document, or has copied it from jobs/ID/manifest.yaml.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/yaml/yaml.h"

/* Return the kind in KNOWN that has the same apiVersion and kind as the manifest ROOT, or NULL. */
const struct spec_kind *spec_ready_kind(const struct spec_kinds *known,
					const struct spec_yaml *root);

/*
 * Add an error, because ROOT is a manifest of a kind that can't be submitted. The error lists the N
 * KINDS that can be submitted.
 */
void spec_ready_refuse(const struct spec_yaml *root, const struct spec_kind *const *kinds, size_t n,
		       struct spec_errors *e);

/*
 * Check the manifest ROOT for B's kind and identity. Make B's object from it, without the fields
 * that others have added. Choose the object's name: the manifest's own name, its generateName with
 * a random suffix, or a new name if the identity has RENAME. Return 0 if B has no errors. Otherwise
 * return the errno of B's errors, which may be from earlier calls.
 */
int spec_ready_read(const struct spec_yaml *root, struct spec_build *b);

/*
 * Remove the fields that the server, kxfs, controllers and webhooks have added to OBJECT, a
 * manifest of KIND whose metadata is a map. Keep fields that a person might have written.
 */
void spec_added_remove(struct json_object *object, const struct spec_kind *kind);
