/* SPDX-License-Identifier: MIT */
/*
 * An archive in a bucket of S3, or of what speaks as S3 does: curl signs requests, and keys come from s3_keys.h. A read
 * is tried again while the server is busy; when it can't be reached that is the answer at once, and of what is asked
 * within the next 5 s too. A put is tried once: who writes has time, and an order of its own.
 */
#ifndef KXFS_BACKEND_ARCHIVE_S3_H
#define KXFS_BACKEND_ARCHIVE_S3_H

#include "backend/archive/archive.h"

/*
 * CONFIG is copied. 0; -EINVAL, -ENOKEY, -EOPNOTSUPP (a libcurl that is too old), the errno of a CA file: *RET_TEXT
 * says what to do.
 */
int archive_s3_new(struct loop *loop, const struct archive_config *config, void **ret_impl,
		   char **ret_text);
extern const struct archive_ops archive_s3_ops;

#endif
