/* SPDX-License-Identifier: MIT */
/* Makes the requests of review.h as JSON, and parses the replies. */
#include "spec/api/review.h"

#include <errno.h>

#include "spec/base/tree.h"
#include "spec/base/value.h"
#include "spec/base/words.h"

#define VERSION_MAX 64

char *spec_review_ask(const char *group, const char *resource, const char *verb,
		      const char *namespace)
{
	struct json_object *o cleanup_json = spec_tree_map(), *attributes;
	const char *slash = strchrnul(resource, '/');

	spec_tree_text(o, "apiVersion", "authorization.k8s.io/v1");
	spec_tree_text(o, "kind", "SelfSubjectAccessReview");
	attributes = spec_tree_add(spec_tree_add(o, "spec", spec_tree_map()), "resourceAttributes",
				   spec_tree_map());
	spec_tree_text(attributes, "group", group);
	spec_tree_add(attributes, "resource",
		      spec_tree_format("%.*s", (int)(slash - resource), resource));
	if (*slash)
		spec_tree_text(attributes, "subresource", slash + 1);
	spec_tree_text(attributes, "verb", verb);
	if (*namespace)
		spec_tree_text(attributes, "namespace", namespace);
	return spec_tree_print(o);
}

int spec_review_reply(const char *json, size_t len, bool *ret_allowed)
{
	struct spec_value *o cleanup_free = NULL;
	int err = spec_value_parse_map(json, len, &o);
	const struct spec_value *status = err ? NULL : spec_read_map(o, "status");

	if (!status)
		return -EINVAL;
	*ret_allowed = spec_read_bool(status, "allowed");
	return 0;
}

int spec_version_reply(const char *json, size_t len, char **ret)
{
	struct spec_value *o cleanup_free = NULL;
	int err = spec_value_parse_map(json, len, &o);
	const char *text = err ? "" : spec_read_text(o, "gitVersion");

	if (!*text)
		return -EINVAL;
	*ret = text_copy(text);
	(void)spec_words_clean(*ret, VERSION_MAX);
	return 0;
}
