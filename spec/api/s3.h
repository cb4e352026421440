/* SPDX-License-Identifier: MIT */
/*
 * What a server of S3 answers, the answer of its token service, and the file in which the keys of a user stand. All may
 * be anything. No message holds a key.
 */
#pragma once

#include "spec/base/base.h"

/* Plain data. */
struct spec_s3_object {
	char *name; /* whole; what has more below it ends with '/' */
	uint64_t size;
};

/* The answer of ListObjectsV2, in the order of bytes. Plain data. */
struct spec_s3_list {
	struct spec_s3_object *objects;
	size_t n;
	bool more; /* behind the last of them */
};

/* False: TEXT is none. *RET is to be cleared in any case. */
bool spec_s3_list_parse(const char *text, size_t len, struct spec_s3_list *ret);
void spec_s3_list_clear(struct spec_s3_list *list);

/* An answer that is no success. No string is NULL; "": it does not say. Clean for a terminal. Plain data. */
struct spec_s3_error {
	char *code, *message, *region;
};

void spec_s3_error_parse(const char *text, size_t len, struct spec_s3_error *ret);
void spec_s3_error_clear(struct spec_s3_error *error);

/* ID, SECRET and SESSION can be a line of a head; SESSION may be "". Plain data. */
struct spec_s3_keys {
	char *id, *secret, *session;
	int64_t expires; /* ns since 1970; 0: they do not */
};

/* The answer of AssumeRoleWithWebIdentity. False: it holds no keys; *RET is empty then. */
bool spec_s3_keys_reply(const char *text, size_t len, struct spec_s3_keys *ret);
/*
 * The keys of PROFILE in a shared credentials file. 0; -ENOENT: it has no such profile; -EINVAL: that has no keys, or
 * such as are none. *RET is empty then.
 */
int spec_s3_keys_file(const char *text, size_t len, const char *profile, struct spec_s3_keys *ret);
/* False: ID, SECRET and SESSION (may be NULL) are none. */
bool spec_s3_keys_set(struct spec_s3_keys *keys, const char *id, const char *secret,
		      const char *session);
void spec_s3_keys_clear(struct spec_s3_keys *keys);
