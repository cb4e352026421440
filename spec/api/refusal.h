/* SPDX-License-Identifier: MIT */
/* Translates a failed reply into an errno (see docs/kxfs-layout.5) and a message for the user. */
#pragma once

#include "spec/base/base.h"

/* The request that failed. Plain data. */
struct spec_asked {
	const char *verb;     /* "create" */
	const char *resource; /* "jobs.batch.volcano.sh" */
	const char *namespace;
	const char *name; /* of the object; "" if the request names none */
	/* size of the request's body in bytes, which the message for -EFBIG contains */
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
 * Return the errno for a reply whose status is not 2xx, or whose body is not the expected one. BODY
 * may be a Status or anything else. Set *RET_TEXT to a message for the user, malloc'ed: one to
 * three lines without a newline at the end. The message contains the remedy if it is known, and
 * never a Go dump or a credential.
 *
 * The errno is one of -EINVAL, -EFBIG, -EACCES, -EDQUOT, -ENOENT, -EOPNOTSUPP, -EEXIST, -ESTALE (a
 * precondition failed, or status 410), -EAGAIN (nothing was done; retry), -ETIMEDOUT, -EIO.
 */
int spec_reply_errno(int status, const char *body, size_t len, const struct spec_asked *asked,
		     char **ret_text);

/*
 * True if this failed reply proves that the request had no effect. A Status from the API server
 * usually proves it. Any other reply may be from a proxy that forwarded the request, but lost the
 * server's reply. The exceptions are 401, 413 and 429, because a proxy that sends one of these has
 * not forwarded the request, and the API server's plain text for an API that it does not serve.
 */
bool spec_reply_did_nothing(int status, const char *body, size_t len);
/*
 * True if the request failed because a webhook did not answer the API server. The request had no
 * effect, since the server calls webhooks before it changes anything.
 */
bool spec_reply_is_unchecked(int status, const char *body, size_t len);
