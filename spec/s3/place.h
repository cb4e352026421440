/* SPDX-License-Identifier: MIT */
/*
 * S3 as bytes: where objects are (place.h: URLs and queries), what a server answers (reply.h: lists, refusals, keys
 * of a token service), and the file that holds a user's keys (keys.h). All that comes from outside is hostile.
 */
#ifndef KXFS_SPEC_S3_PLACE_H
#define KXFS_SPEC_S3_PLACE_H

#include "spec/base/base.h"

/* A bucket, and where in it. */
struct spec_s3_place {
	char *bucket;
	char *prefix; /* "" or what ends with a slash */
	char *region;
	char *url; /* of the bucket, without a slash at its end */
};

/*
 * TEXT is "s3://BUCKET[/PREFIX]". ENDPOINT is the URL of a server ("": Amazon's), on which a bucket is the first part
 * of the path; of Amazon's it is a name of its own, unless it has dots, which no certificate covers. REGION is not "".
 * 0, or -EINVAL with *RET_TEXT. *RET is to be cleared in any case.
 */
int spec_s3_place_parse(const char *text, const char *endpoint, const char *region,
			struct spec_s3_place *ret, char **ret_text);
void spec_s3_place_clear(struct spec_s3_place *p);

/* The path of the object KEY, behind the bucket's URL. malloc'ed. */
char *spec_s3_object_path(const char *key);
/*
 * Path and query that list one level below PREFIX ("" or what ends with a slash), behind the name AFTER there (NULL:
 * from the first). The query is in the order of its names, for they are signed as they stand. malloc'ed.
 */
char *spec_s3_list_path(const char *prefix, const char *after);

/* The form that asks a token service for keys of ROLE by a web identity TOKEN. malloc'ed, and a secret. */
char *spec_s3_token_form(const char *role, const char *session, const char *token);

#endif
