/* SPDX-License-Identifier: MIT */
/* Any document as mounts. An accepted mount is complete, and a refused one gets an error text. */
#include "fuzz.h"

#include "spec/app/app_value.h"

static void parse(const struct spec_yaml *node, const char *home)
{
	const struct app_path place = {.key = "mounts"};
	const struct spec_app_rules rules = {.home = home};
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct app_reader r = {.rules = &rules, .e = &e};
	struct spec_role role = {0};

	app_read_mount(&r, &place, node, &role);
	assert((e.err == 0) == (e.n == 0) && (e.n > 0 || role.n_mounts > 0));
	for (size_t i = 0; i < role.n_mounts; i++) {
		struct spec_mount *m = &role.mounts[i];

		assert(e.err || (m->src && *m->src && m->dst && *m->dst));
		assert((m->type == SPEC_MOUNT_DEVICE) == (m->permissions != NULL) || e.err);
		spec_mount_clear(m);
	}
	free(role.mounts);
	spec_errors_clear(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	cleanup_free char *text = malloc(size + 1);
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_yaml scalar = {.type = SPEC_YAML_SCALAR, .line = 1, .column = 1, .len = size};

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	/* Parse it as a document, and as a plain string. */
	if (spec_yaml_parse(text, size, &root, &e) == 0) {
		parse(root, "/users/ada/");
		parse(root, NULL);
	}
	scalar.text = text;
	parse(&scalar, "/users/ada");
	spec_errors_clear(&e);
	return 0;
}
