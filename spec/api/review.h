/* SPDX-License-Identifier: MIT */
/*
 * Requests about the user's rights and the server's version. Every authenticated user may create a
 * SelfSubjectAccessReview, which asks whether the user has one right.
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_REVIEW_PATH "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

/*
 * Return a request as JSON, malloc'ed. It asks whether the user may VERB the RESOURCE ("pods/log")
 * of GROUP in NAMESPACE; "" stands for the whole cluster.
 */
char *spec_review_ask(const char *group, const char *resource, const char *verb,
		      const char *namespace);
/* Parse the reply. Return 0, or -EINVAL if the reply is malformed. */
int spec_review_reply(const char *json, size_t len, bool *ret_allowed);

/*
 * Set *RET to the server's version ("v1.30.2"), malloc'ed, without control characters. Return 0, or
 * -EINVAL if the reply has no version.
 */
int spec_version_reply(const char *json, size_t len, char **ret);
