/* SPDX-License-Identifier: MIT */
/* Translates a failed reply into an errno (see docs/kxfs-layout.5) and a text for people. */
#pragma once

#include "spec/base/base.h"

/* The request whose failed reply is explained to users. Plain data. */
struct spec_asked {
	const char *verb;     /* "create" */
	const char *resource; /* "jobs.batch.volcano.sh" */
	const char *namespace;
	const char *name; /* or "" */
	/* number of bytes in the request's body; the text for EFBIG contains it */
	size_t sent;
};

/* Describe a request that names no object. */
static inline struct spec_asked spec_asked_of(const char *verb, const char *resource,
					      const char *namespace)
{
	return (struct spec_asked){verb, resource, namespace, "", 0};
}

/*
 * Return the full name of a resource, malloc'ed: "jobs.batch.volcano.sh" for "jobs" and
 * "batch.volcano.sh/v1alpha1"; "pods" for "pods" and "v1".
 */
char *spec_asked_resource(const char *plural, const char *api_version);

/*
 * Return the errno of a failed reply, and set *RET_TEXT to a text for people, malloc'ed. A reply
 * has failed if its STATUS is not 2xx, or if it is 2xx with an unexpected body. BODY may be a
 * Status object or anything else. The text has one to three lines, without a newline at the end. It
 * contains the remedy if kxfs knows one. It never contains a Go dump or a credential.
 *
 * The errno is never 0. It is one of -EINVAL, -EFBIG, -EACCES, -EDQUOT, -ENOENT, -EOPNOTSUPP,
 * -EEXIST, -ESTALE (a precondition failed, or status 410), -EAGAIN (nothing was done; retry),
 * -ETIMEDOUT and -EIO.
 */
int spec_reply_errno(int status, const char *body, size_t len, const struct spec_asked *asked,
		     char **ret_text);

/*
 * True if a request with this failed reply certainly had no effect. In general only a Status from
 * the API server itself can guarantee that. Any other reply may come from a proxy or a login page
 * in front of the server, while the server's own reply was lost. But 401, 413 and 429 are trusted
 * from any sender, because a proxy that sends one of them has not forwarded the request.
 */
bool spec_reply_did_nothing(int status, const char *body, size_t len);
/*
 * True if the request failed because a webhook did not answer the API server. The request then had
 * no effect, since the server calls webhooks before it changes anything.
 */
bool spec_reply_is_unchecked(int status, const char *body, size_t len);
