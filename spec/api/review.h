/* SPDX-License-Identifier: MIT */
/*
 * Makes requests about the server and the user's rights, and parses the replies. A
 * SelfSubjectAccessReview asks whether the user has one right. It belongs to
 * authorization.k8s.io/v1, and every authenticated user may create one. "/version" returns the
 * server's version.
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_REVIEW_PATH "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

/*
 * Return the JSON text of a SelfSubjectAccessReview, malloc'ed. It asks whether the user may VERB
 * the RESOURCE ("pods/log") of GROUP in NAMESPACE, or in the whole cluster if NAMESPACE is "".
 */
char *spec_review_ask(const char *group, const char *resource, const char *verb,
		      const char *namespace);
/* Parse the reply to the review of spec_review_ask. Return 0, or -EINVAL if it is malformed. */
int spec_review_reply(const char *json, size_t len, bool *ret_allowed);

/*
 * Set *RET to the version ("v1.30.2") in the reply to "/version", malloc'ed and without control
 * characters. Return 0, or -EINVAL if the reply has no version.
 */
int spec_version_reply(const char *json, size_t len, char **ret);
