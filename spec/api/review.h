/* SPDX-License-Identifier: MIT */
/*
 * What a server says of itself and of the user: its version, whether the user has a right, and which rights the user
 * has (SelfSubjectAccessReview and SelfSubjectRulesReview of authorization.k8s.io/v1, which every authenticated user
 * may create).
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_REVIEW_PATH "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define SPEC_RULES_PATH	 "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"

/*
 * The question whether the user may VERB the RESOURCE ("pods/log") of GROUP in NAMESPACE ("": in the whole cluster), as
 * the JSON text of a review. malloc'ed.
 */
char *spec_review_ask(const char *group, const char *resource, const char *verb,
		      const char *namespace);
/* Read the answer to that question. 0, or -EINVAL: it is no answer. */
int spec_review_reply(const char *json, size_t len, bool *ret_allowed);

/* The question what the user may do in NAMESPACE. malloc'ed. */
char *spec_rules_ask(const char *namespace);
/*
 * Does the answer to that let the user VERB each RESOURCE of GROUP? 0; -EINVAL: it is no answer; -ENODATA: it is not
 * complete, since an authorizer of the server can't list its rules.
 */
int spec_rules_reply(const char *json, size_t len, const char *group, const char *resource,
		     const char *verb, bool *ret_allowed);

/* The version in the reply to "/version" ("v1.30.2"), made harmless, malloc'ed; -EINVAL: it has none. */
int spec_version_reply(const char *json, size_t len, char **ret);
