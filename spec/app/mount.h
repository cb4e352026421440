/* SPDX-License-Identifier: MIT */
/*
 * Mounts of a role: bind (a host folder), volume (a claim), device. Written as a map with "type",
 * or in TorchX's comma form ("type=bind,src=/a,dst=/b,readonly"). One such string may have several
 * mounts.
 */
#pragma once

#include "spec/base/error.h"
#include "spec/yaml/yaml.h"

struct app_path;

enum spec_mount_type { SPEC_MOUNT_BIND, SPEC_MOUNT_VOLUME, SPEC_MOUNT_DEVICE };

/* A mount. Plain data: mount.c fills it in. */
struct spec_mount {
	enum spec_mount_type type;
	char *src; /* host path, or the claim's name */
	char *dst;
	bool read_only;	   /* bind, volume */
	char *permissions; /* device: a subset of r, w, m; NULL otherwise */
};

void spec_mount_clear(struct spec_mount *m);

/*
 * Append the mounts in NODE (a map or a string) to *V, *N. HOME replaces a leading "~" of a bind
 * source in the string form. Errors are added to E with PATH.
 */
void spec_mount_parse(const struct spec_yaml *node, const struct app_path *path, const char *home,
		      struct spec_mount **v, size_t *n, struct spec_errors *e);
