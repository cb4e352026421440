/* SPDX-License-Identifier: MIT */
/* AppDefs for tests of spec/ that do not use kinds. The schedulers are made up. */
#pragma once

#include "spec/app/app.h"

/*
 * Return the length of APP-SUFFIX-ROLE-K-0, the form of Volcano's pod names. Its webhook replaces
 * the 0 by LAST.
 */
static inline size_t document_pod_name_len(size_t app, size_t role, size_t k, size_t last)
{
	return app + 16 + role + (size_t)snprintf(NULL, 0, "-%zu-%zu", k, last);
}

/* Return the name of named resource I, from the source of their table; NULL after the last one. */
static inline const char *document_resource_name(size_t i)
{
	static char name[64];
	FILE *f = fopen(TEST_SOURCE "/spec/app/named_resource.c", "re");
	char line[256];

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "\t{\"%63[^\"]\", %*d", name) == 1 && i-- == 0)
			break;
	i = !f || feof(f);
	if (f)
		fclose(f);
	return i ? NULL : name;
}

static inline int document_parse(const char *text, size_t len, const char *home,
				 struct spec_app **ret, struct spec_errors *e)
{
	const struct spec_app_rules rules = {
		.home = home,
		.known = {{.name = "volcano",
			   .torchx = "kubernetes",
			   .pod_name_len = document_pod_name_len},
			  {.name = "mcad", .torchx = "kubernetes_mcad"},
			  {.name = "appwrapper", .also = "mcad", .torchx = "kubernetes_mcad"},
			  {.name = "local",
			   .torchx = "local_cwd",
			   .pod_name_len = document_pod_name_len}},
		.n_known = 4,
	};
	struct spec_yaml *root = NULL;
	int err = spec_app_parse(text, len, &root, e);

	if (root)
		err = spec_app_read(root, &rules, ret, e);
	spec_yaml_free(root);
	return err;
}
