/* SPDX-License-Identifier: MIT */
/*
 * What an answer that is no success means: an errno, and a text for people (docs/kxfs-layout.5, errors).
 */
#pragma once

#include "spec/base/base.h"

/* What was asked, for the text of an answer. Plain data. */
struct spec_asked {
	const char *verb;     /* "create" */
	const char *resource; /* "jobs.batch.volcano.sh" */
	const char *namespace;
	const char *name; /* "" none */
	size_t sent;	  /* bytes of the body that was sent; for EFBIG */
};

/* "jobs.batch.volcano.sh" of "jobs" and "batch.volcano.sh/v1alpha1", "pods" of "pods" and "v1"; malloc'ed. */
char *spec_asked_resource(const char *plural, const char *api_version);

/*
 * The errno of a reply that is not 2xx, or that is 2xx and not what was asked for, with its text for people: one to
 * three lines without a newline at the end, no Go dump, no credential, with what to do if that is known. BODY is a
 * Status object, or anything. Never 0: -EINVAL, -EFBIG, -EACCES, -EDQUOT, -ENOENT, -EOPNOTSUPP, -EEXIST, -ESTALE (a
 * precondition; 410), -EAGAIN (nothing was done; it may be asked again), -ETIMEDOUT, -EIO. *RET_TEXT is malloc'ed.
 */
int spec_reply_errno(int status, const char *body, size_t len, const struct spec_asked *asked,
		     char **ret_text);

/*
 * Is it certain that a request with this answer, which is no success, had no effect? Only the API server itself can say
 * that, by a Status: whatever stands before it (a proxy, a login page) may answer in place of a reply that it has lost.
 * But nobody passes on a request that they do not accept: so 401, 413 and 429 are believed whoever sends them.
 */
bool spec_reply_did_nothing(int status, const char *body, size_t len);
/* True if a webhook did not answer the API server, which calls webhooks before it changes anything. */
bool spec_reply_is_unchecked(int status, const char *body, size_t len);
