/* SPDX-License-Identifier: MIT */
/* Keys that sign requests, and the file that a user keeps them in. */
#ifndef KXFS_SPEC_S3_KEYS_H
#define KXFS_SPEC_S3_KEYS_H

#include "spec/base/base.h"

/* All NULL: none. Each fits into a header line. */
struct spec_s3_keys {
	char *id, *secret;
	char *token; /* of keys that end; "" none */
};

/* Overwritten, and freed. */
void spec_s3_keys_clear(struct spec_s3_keys *k);
void spec_s3_keys_copy(struct spec_s3_keys *to, const struct spec_s3_keys *from);
bool spec_s3_keys_same(const struct spec_s3_keys *a, const struct spec_s3_keys *b);

/*
 * ID, SECRET and TOKEN (may be NULL) as keys. -EINVAL: one is empty, or holds what no header line may. SOURCE is
 * where they are from, for *RET_TEXT, which quotes none of them.
 */
int spec_s3_keys_set(struct spec_s3_keys *ret, const char *id, const char *secret,
		     const char *token, const char *source, char **ret_text);

/*
 * Those of PROFILE in TEXT, which is that of a shared credentials file, called FILE. -ENOENT: it has no such profile;
 * -EINVAL: that has no keys. *RET_TEXT quotes nothing of the file. *RET is empty before.
 */
int spec_s3_keys_read(const char *text, const char *file, const char *profile,
		      struct spec_s3_keys *ret, char **ret_text);

#endif
