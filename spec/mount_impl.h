/* SPDX-License-Identifier: MIT */
/*
 * What mount.c and mount_text.c share: the kinds of mounts, and the state of reading one.
 */
#ifndef KXFS_SPEC_MOUNT_IMPL_H
#define KXFS_SPEC_MOUNT_IMPL_H

#include "spec/mount.h"

enum mount_option { MOUNT_TYPE, MOUNT_SRC, MOUNT_DST, MOUNT_READ_ONLY, MOUNT_PERM, MOUNT_N };

struct mount_kind {
	const char *name;
	const char *fields[MOUNT_N]; /* names in the map form; NULL: not a field of this kind */
	const char *form;	     /* the string form, for messages */
};

extern const struct mount_kind mount_kinds[]; /* by enum spec_mount_type */

/* What is being read, and what of it is known so far. */
struct mount_reader {
	const struct spec_yaml *node;
	const char *path;
	const char *home; /* string form only */
	struct spec_errors *e;
	int err; /* of the first error; 0: none */
	struct spec_mount *v;
	size_t n;
};

/* Note ERR, unless there was one before. */
void mount_failed(struct mount_reader *r, int err);

/* Note an error at NODE, in the mount itself. */
#define mount_wrong(r, node, ...)                                                                  \
	mount_failed(r, spec_errors_add((r)->e, -EINVAL, (node)->line, (node)->column, (r)->path,  \
					__VA_ARGS__))

/* The enum spec_mount_type that is called WORD; -1: none. */
int mount_kind_of(const char *word);
/* The first character of PERM that is no permission; 0: all are. */
char mount_bad_permission(const char *perm);
/* malloc'ed; NULL: noted. */
char *mount_copy(struct mount_reader *r, const char *text, size_t len);
/* Append M, which is taken over. */
void mount_append(struct mount_reader *r, struct spec_mount *m);

/* Read the text R->node. */
void mount_read_text(struct mount_reader *r);

#endif
