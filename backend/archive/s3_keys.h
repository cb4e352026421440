/* SPDX-License-Identifier: MIT */
/*
 * Finds the keys with which requests to S3 are signed: those of the environment, of a web identity (a token in a file,
 * for which the token service gives keys for a while), or of the shared credentials file, whichever comes first. Files
 * are read on the pool. No key appears in a message. I/O thread only, but for s3_keys_new and s3_keys_free. Private to
 * backend/archive/.
 */
#pragma once

#include "backend/base/loop.h"
#include "spec/api/s3.h"

struct s3_keys;

/* ERR is 0, with KEYS, borrowed, which have another GENERATION than those before; or a negative errno with its TEXT. */
typedef void (*s3_keys_fn)(void *data, int err, const struct spec_s3_keys *keys,
			   uint64_t generation, const char *text);

/* Make S3_KEYS, by what the environment says. 0, or a negative errno with *RET_TEXT. */
int s3_keys_new(struct loop *loop, const char *region, struct s3_keys **ret, char **ret_text);
/* Call FN: within this call if keys are known and good, else later. A failure is the answer for 5 s. */
void s3_keys_get(struct s3_keys *k, s3_keys_fn fn, void *data);
/*
 * The server refused the keys of GENERATION: get new ones, but not more often than each 5 s. True: asking again may
 * help.
 */
bool s3_keys_refused(struct s3_keys *k, uint64_t generation);
/* Stop: those who wait are not called any more. FN(DATA) is called when nothing runs any more. */
void s3_keys_stop(struct s3_keys *k, loop_fn fn, void *data);
void s3_keys_free(struct s3_keys *k); /* NULL is allowed */
