/* SPDX-License-Identifier: MIT */
/*
 * Ready manifests: documents that already are objects for the cluster. A user has written such a
 * document, or copied it from jobs/ID/manifest.yaml.
 */
#pragma once

#include "spec/pods/pod.h"
#include "spec/yaml/yaml.h"

/* Return the kind in KNOWN that has the apiVersion and kind of the manifest ROOT, or NULL. */
const struct spec_kind *spec_ready_kind(const struct spec_kinds *known,
					const struct spec_yaml *root);

/*
 * Add the error that the manifest ROOT is of none of the N KINDS. The error also lists KINDS as the
 * kinds that can be submitted. WHERE (" here") is the text for the place where they can be
 * submitted.
 */
void spec_ready_refuse(const struct spec_yaml *root, const struct spec_kind *const *kinds, size_t n,
		       const char *where, struct spec_errors *e);

/*
 * Check the manifest ROOT for B's kind and identity, and make B's object without the fields that
 * others have added. Choose the object's name: the manifest's own name, its generateName with a
 * random suffix, or a new name if the identity has RENAME. Return 0 if B has no errors; otherwise
 * the errno of its errors, which may be from earlier calls.
 */
int spec_ready_read(const struct spec_yaml *root, struct spec_build *b);

/*
 * Remove fields that the server, kxfs, controllers and webhooks have added to OBJECT, if it is
 * certain that no person has written them. OBJECT is a manifest of KIND, and its metadata is a map.
 */
void spec_added_remove(struct json_object *object, const struct spec_kind *kind);
