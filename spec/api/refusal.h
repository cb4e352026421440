/* SPDX-License-Identifier: MIT */
/* Translates a failed reply into an errno (see docs/kxfs-layout.5) and a text for people. */
#pragma once

#include "spec/base/base.h"

/* A request whose failed reply is explained. Plain data. */
struct spec_asked {
	const char *verb;     /* "create" */
	const char *resource; /* "jobs.batch.volcano.sh" */
	const char *namespace;
	const char *name; /* or "" */
	/* bytes of the request's body, for the text of EFBIG */
	size_t sent;
};

/* Describe a request that names no object. */
static inline struct spec_asked spec_asked_of(const char *verb, const char *resource,
					      const char *namespace)
{
	return (struct spec_asked){verb, resource, namespace, "", 0};
}

/*
 * Return a resource's full name, malloc'ed: "jobs.batch.volcano.sh" for "jobs" of
 * "batch.volcano.sh/v1alpha1".
 */
char *spec_asked_resource(const char *plural, const char *api_version);

/*
 * Return the errno of a reply that is not 2xx, or is 2xx with an unexpected body. BODY may be a
 * Status or anything else. Set *RET_TEXT to a text for people, malloc'ed: one to three lines
 * without a newline at the end, with the remedy if known, never with a Go dump or a credential.
 *
 * The errno is one of -EINVAL, -EFBIG, -EACCES, -EDQUOT, -ENOENT, -EOPNOTSUPP, -EEXIST, -ESTALE (a
 * precondition failed, or status 410), -EAGAIN (nothing was done; retry), -ETIMEDOUT, -EIO.
 */
int spec_reply_errno(int status, const char *body, size_t len, const struct spec_asked *asked,
		     char **ret_text);

/*
 * True if a request with this failed reply certainly had no effect. Usually only a Status from the
 * API server guarantees that: a proxy or a login page may have sent another reply, while the
 * server's own reply was lost. But a proxy that sends 401, 413 or 429 has not forwarded the
 * request.
 */
bool spec_reply_did_nothing(int status, const char *body, size_t len);
/*
 * True if the request failed because a webhook did not answer the API server. The request had no
 * effect, since the server calls webhooks before it changes anything.
 */
bool spec_reply_is_unchecked(int status, const char *body, size_t len);
