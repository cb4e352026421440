/* SPDX-License-Identifier: MIT */
/* A ready manifest under another name. A part of ready.c in a file of its own. */
#ifndef KXFS_SPEC_READY_NAME_H
#define KXFS_SPEC_READY_NAME_H

#include "spec/kind.h"

struct json_object;

/*
 * Give OBJECT, of KIND and called *ID, another name: the same with another random suffix, which is *ID then.
 * 0, or the errno of E: -EEXIST: who->beside, and what it wraps would be called as it is already.
 */
int spec_ready_rename(struct json_object *object, const struct spec_kind *kind,
		      const struct spec_identity *who, char **id, struct spec_errors *e);

#endif
