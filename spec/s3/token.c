/* SPDX-License-Identifier: MIT */
/* AssumeRoleWithWebIdentityResponse: the keys of a role, for a time. */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/s3/reply.h"
#include "spec/s3/xml.h"

#define CREDENTIALS "AssumeRoleWithWebIdentityResponse/AssumeRoleWithWebIdentityResult/Credentials/"

struct token_reader {
	char *id, *secret, *token;
	int64_t end;
};

static void on_element(void *data, const char *path, const char *value)
{
	struct token_reader *r = data;
	char **field;

	if (strncmp(path, CREDENTIALS, strlen(CREDENTIALS)) != 0)
		return;
	path += strlen(CREDENTIALS);
	field = streq(path, "AccessKeyId")	 ? &r->id
		: streq(path, "SecretAccessKey") ? &r->secret
		: streq(path, "SessionToken")	 ? &r->token
						 : NULL;
	if (field) {
		text_wipe(field);
		*field = text_copy(value);
	} else if (streq(path, "Expiration") &&
		   spec_time_parse(value, strlen(value), &r->end) == 0) {
		r->end = 0;
	}
}

int spec_s3_token_parse(const char *text, size_t len, struct spec_s3_keys *ret, int64_t *ret_end)
{
	struct token_reader r = {0};
	cleanup_free char *ignored = NULL;
	int err = xml_read(text, len, on_element, &r);

	*ret = (struct spec_s3_keys){0};
	if (!err && (!r.token || !*r.token || r.end <= 0))
		err = -EINVAL;
	if (!err)
		err = spec_s3_keys_set(ret, r.id, r.secret, r.token, "the answer", &ignored);
	*ret_end = r.end;
	text_wipe(&r.id);
	text_wipe(&r.secret);
	text_wipe(&r.token);
	return err;
}
