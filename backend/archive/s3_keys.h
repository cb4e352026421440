/* SPDX-License-Identifier: MIT */
/*
 * Where the keys of an S3 archive come from, as in Amazon's own programs: the environment (AWS_ACCESS_KEY_ID ...), a
 * web identity token (AWS_WEB_IDENTITY_TOKEN_FILE, AWS_ROLE_ARN) for which the token service gives keys for a time, or
 * the shared credentials file (AWS_SHARED_CREDENTIALS_FILE, AWS_PROFILE). Files are read on the pool. No key appears
 * in a message. Private to backend/archive/. I/O thread only, but for new and free.
 */
#ifndef KXFS_BACKEND_ARCHIVE_S3_KEYS_H
#define KXFS_BACKEND_ARCHIVE_S3_KEYS_H

#include "backend/base/loop.h"
#include "spec/s3/keys.h"

struct s3_keys;

/* ERR is 0 with KEYS, borrowed until the call returns; or a negative errno with TEXT for people. */
typedef void (*s3_keys_fn)(void *data, int err, const struct spec_s3_keys *keys, const char *text);

/*
 * 0, or -ENOKEY, -EINVAL with *RET_TEXT: the environment names none, or ones that can't be. CA_FILE ("": the system's)
 * is for the token service.
 */
int s3_keys_new(struct loop *loop, const char *region, const char *ca_file, struct s3_keys **ret,
		char **ret_text);
/*
 * FN is called exactly once, from the loop: soon where good keys are known, else when they have been got, which takes
 * no longer than 25 s.
 */
void s3_keys_get(struct s3_keys *k, s3_keys_fn fn, void *data);
/*
 * The server has refused KEYS. True: others are known, or have been asked for, so s3_keys_get may give others; false:
 * there are none, or it is less than 5 s ago that they were asked for.
 */
bool s3_keys_refused(struct s3_keys *k, const struct spec_s3_keys *keys);
/* Those who wait are not called any more. Then FN, when no request is under way. */
void s3_keys_stop(struct s3_keys *k, loop_fn fn, void *data);
void s3_keys_free(
	struct s3_keys *k); /* after s3_keys_stop, or when it was never used. NULL is allowed */

#endif
