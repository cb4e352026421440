/* SPDX-License-Identifier: MIT */
/*
 * Reads the answers of a server of S3 and of its token service, and the file in which the keys of a user stand. Any of
 * these may be anything. No message has a key in it.
 */
#pragma once

#include "spec/base/base.h"

/* An item of a list. Plain data. */
struct spec_s3_object {
	char *name; /* its whole name; if more stands below it, the name ends with '/' */
	uint64_t size;
};

/* The answer of ListObjectsV2, in the order of bytes. Plain data. */
struct spec_s3_list {
	struct spec_s3_object *objects;
	size_t n;
	bool more; /* behind the last of them */
};

/* Read such an answer. False: TEXT is none. *RET is to be cleared in any case. */
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
	int64_t expires; /* when they expire, in ns since 1970; 0: they do not */
};

/* Read the answer of AssumeRoleWithWebIdentity. False: it has no keys; *RET is empty then. */
bool spec_s3_keys_reply(const char *text, size_t len, struct spec_s3_keys *ret);
/*
 * Read the keys of PROFILE from a shared credentials file. 0; -ENOENT: the file has no such profile; -EINVAL: the
 * profile has no keys, or keys that can't be. *RET is empty then.
 */
int spec_s3_keys_file(const char *text, size_t len, const char *profile, struct spec_s3_keys *ret);
/* Set KEYS. False: ID, SECRET and SESSION (may be NULL) can't be keys. */
bool spec_s3_keys_set(struct spec_s3_keys *keys, const char *id, const char *secret,
		      const char *session);
void spec_s3_keys_clear(struct spec_s3_keys *keys);
