/* SPDX-License-Identifier: MIT */
/*
 * Queries about a server and the user: its version, whether the user has a right, and the list of
 * the user's rights (SelfSubjectAccessReview and SelfSubjectRulesReview of authorization.k8s.io/v1,
 * which every authenticated user may create).
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_REVIEW_PATH "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define SPEC_RULES_PATH	 "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"

/*
 * Return the JSON text of a review: may the user VERB the RESOURCE ("pods/log") of GROUP in
 * NAMESPACE ("": in the whole cluster)? malloc'ed.
 */
char *spec_review_ask(const char *group, const char *resource, const char *verb,
		      const char *namespace);
/* Parse the reply to that review. Return 0, or -EINVAL if it is malformed. */
int spec_review_reply(const char *json, size_t len, bool *ret_allowed);

/* Return the JSON text of a review of the user's rights in NAMESPACE. malloc'ed. */
char *spec_rules_ask(const char *namespace);
/*
 * Find in the reply to spec_rules_ask whether the user may VERB each RESOURCE of GROUP. Return 0;
 * -EINVAL if the reply is malformed; -ENODATA if the reply is incomplete because an authorizer of
 * the server can't list rules.
 */
int spec_rules_reply(const char *json, size_t len, const char *group, const char *resource,
		     const char *verb, bool *ret_allowed);

/*
 * Return the version in the reply to "/version" ("v1.30.2"), cleaned, malloc'ed; -EINVAL if it has
 * none.
 */
int spec_version_reply(const char *json, size_t len, char **ret);
