/* SPDX-License-Identifier: MIT */
/* Any document as mounts. An accepted mount is complete, and a refused one gets an error text. */
#include <assert.h>

#include "spec/app/app_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void parse(const struct spec_yaml *node, const char *home)
{
	const struct app_path place = {.key = "mounts"};
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_mount *v = NULL;
	size_t n = 0;

	spec_mount_parse(node, &place, home, &v, &n, &e);
	assert((e.err == 0) == (e.n == 0) && (e.err == 0) == (n > 0));
	for (size_t i = 0; i < n; i++) {
		assert(v[i].src && *v[i].src && v[i].dst && *v[i].dst);
		assert((v[i].type == SPEC_MOUNT_DEVICE) == (v[i].permissions != NULL));
		spec_mount_clear(&v[i]);
	}
	free(v);
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
