/* SPDX-License-Identifier: MIT */
/* The meaning of a failed reply: an errno, and a text for people (docs/kxfs-layout.5, errors). */
#pragma once

#include "spec/base/base.h"

/* The request, for the text of its reply. Plain data. */
struct spec_asked {
	const char *verb;     /* "create" */
	const char *resource; /* "jobs.batch.volcano.sh" */
	const char *namespace;
	const char *name; /* or "" */
	size_t sent;	  /* bytes of the body of the request; for EFBIG */
};

/*
 * Return the full name of a resource, malloc'ed: "jobs.batch.volcano.sh" for "jobs" and
 * "batch.volcano.sh/v1alpha1"; "pods" for "pods" and "v1".
 */
char *spec_asked_resource(const char *plural, const char *api_version);

/*
 * Return the errno of a reply that is not 2xx, or is a 2xx with an unexpected body, and its text
 * for people: one to three lines without a newline at the end, no Go dump, no credential, and the
 * remedy if that is known. BODY is a Status object, or anything. Never 0: -EINVAL, -EFBIG, -EACCES,
 * -EDQUOT, -ENOENT, -EOPNOTSUPP, -EEXIST, -ESTALE (a precondition; 410), -EAGAIN (nothing was done;
 * retry), -ETIMEDOUT, -EIO. *RET_TEXT is malloc'ed.
 */
int spec_reply_errno(int status, const char *body, size_t len, const struct spec_asked *asked,
		     char **ret_text);

/*
 * True if a request with this failed reply certainly had no effect. Only the API server itself can
 * guarantee that, by a Status: other replies may come from a proxy or a login page in front of the
 * server, after the server's own reply was lost. But a proxy does not forward a request that it
 * refuses with 401, 413 or 429, so these are trusted from any sender.
 */
bool spec_reply_did_nothing(int status, const char *body, size_t len);
/*
 * True if a webhook did not answer the API server, which calls webhooks before it changes anything.
 */
bool spec_reply_is_unchecked(int status, const char *body, size_t len);
