/* SPDX-License-Identifier: MIT */
/* What S3 and its token service (STS) answer: XML from a server that may say anything. */
#ifndef KXFS_SPEC_S3_REPLY_H
#define KXFS_SPEC_S3_REPLY_H

#include "spec/s3/keys.h"

struct spec_s3_listed {
	char *name; /* behind the prefix; that of a folder ends with its only slash */
	uint64_t size;
};

struct spec_s3_list {
	struct spec_s3_listed
		*v; /* in order of names (bytes), each once; at most SPEC_MAX_S3_LISTED */
	size_t n;
	bool more;  /* there are names behind these */
	char *last; /* with MORE: where to go on, which is not before the last of these */
};

void spec_s3_list_clear(struct spec_s3_list *l);
/*
 * TEXT is the answer to spec_s3_list_path(PREFIX, AFTER). What can't be a name of ours (empty, "..", with a control
 * character, of more than 255 bytes) is passed over, as is what is not behind AFTER. -EINVAL: it is no list, or one
 * that goes on where it has begun. *RET is to be cleared in any case.
 */
int spec_s3_list_parse(const char *text, size_t len, const char *prefix, const char *after,
		       struct spec_s3_list *ret);

/* What was asked, for the text of a refusal. Plain data. */
struct spec_s3_asked {
	const char *verb;   /* "list", "read", "write" */
	const char *name;   /* in the bucket */
	const char *bucket; /* "" of the token service */
	int64_t ahead; /* seconds that this machine's clock is before the server's; 0 also if not known */
};

/*
 * The errno of an answer that is no success, with a text for people of one line that says what to do where that is
 * known: -ENOENT (the object is not there), -EACCES, -EAGAIN (later), -ENOSPC, -EIO. *RET_KEYS: other keys may be
 * what is wanted. *RET_TEXT is malloc'ed, holds no key, and quotes of what the server says a few words at most.
 */
int spec_s3_refusal(int status, const char *body, size_t len, const struct spec_s3_asked *asked,
		    bool *ret_keys, char **ret_text);

/* The keys that the token service has answered with, and when they end, in ns since 1970. 0, -EINVAL. */
int spec_s3_token_parse(const char *text, size_t len, struct spec_s3_keys *ret, int64_t *ret_end);

#endif
