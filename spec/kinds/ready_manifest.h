/* SPDX-License-Identifier: MIT */
/*
 * Ready manifests: documents that are an object for the cluster already, written by hand or read from
 * jobs/ID/manifest.yaml.
 */
#pragma once

#include "spec/pods/kind.h"
#include "spec/yaml/yaml.h"

/* Has the document fields that only a manifest has? */
bool spec_ready_is(const struct spec_yaml *root);
/* The kind of such a document, by its apiVersion and kind; NULL: none that is known. */
const struct spec_kind *spec_ready_kind(const struct spec_yaml *root);

/*
 * Check a manifest for KIND and the namespace of WHO. 0, the object without what others have added in *RET and its name
 * (malloc'ed) in *ID, which is a new one if WHO wants that. Or the errno of E.
 */
int spec_ready_read(const struct spec_yaml *root, const struct spec_kind *kind,
		    const struct spec_identity *who, struct json_object **ret, char **id,
		    struct spec_errors *e);
