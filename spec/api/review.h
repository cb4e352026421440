/* SPDX-License-Identifier: MIT */
/*
 * Makes requests about the server and the user's rights, and parses the replies. A
 * SelfSubjectAccessReview asks whether the user has one right. A SelfSubjectRulesReview asks for
 * the list of the user's rights. Both belong to authorization.k8s.io/v1, and every authenticated
 * user may create them. "/version" returns the server's version.
 */
#pragma once

#include "spec/base/base.h"

#define SPEC_REVIEW_PATH "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
#define SPEC_RULES_PATH	 "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"

/*
 * Return the JSON text of a SelfSubjectAccessReview, malloc'ed. It asks whether the user may VERB
 * the RESOURCE ("pods/log") of GROUP in NAMESPACE, or in the whole cluster if NAMESPACE is "".
 */
char *spec_review_ask(const char *group, const char *resource, const char *verb,
		      const char *namespace);
/* Parse the reply to the review of spec_review_ask. Return 0, or -EINVAL if it is malformed. */
int spec_review_reply(const char *json, size_t len, bool *ret_allowed);

/*
 * Return the JSON text of a SelfSubjectRulesReview for NAMESPACE, malloc'ed. It asks for the list
 * of the user's rights.
 */
char *spec_rules_ask(const char *namespace);
/*
 * Find out from the reply to spec_rules_ask whether the user may VERB every object of RESOURCE in
 * GROUP. Return 0; -EINVAL if the reply is malformed; -ENODATA if the list of rights is incomplete,
 * because an authorizer of the server can't list its rules.
 */
int spec_rules_reply(const char *json, size_t len, const char *group, const char *resource,
		     const char *verb, bool *ret_allowed);

/*
 * Set *RET to the version ("v1.30.2") in the reply to "/version", malloc'ed and without control
 * characters. Return 0, or -EINVAL if the reply has no version.
 */
int spec_version_reply(const char *json, size_t len, char **ret);
