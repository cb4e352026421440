/* SPDX-License-Identifier: MIT */
/*
 * Any document as the source of a manifest, for each kind. The manifest is JSON with the reported
 * name, and its YAML form reads back as the same. A refused document gets an error text.
 */
#include "fuzz.h"

#include "spec/base/limits.h"
#include "spec/base/tree.h"
#include "spec/kinds/kinds.h"
#include "spec/kinds/manifest.h"
#include "spec/yaml/yaml.h"
#include "tests/unit/table.h"

static void check_made(const struct spec_manifest *m)
{
	struct json_object *object cleanup_json = spec_tree_parse(m->json);
	struct json_object *again cleanup_json = NULL, *name;
	cleanup(spec_yaml_freep) struct spec_yaml *root = NULL;
	struct spec_errors e = SPEC_ERRORS_INIT;
	char *yaml cleanup_free = NULL;
	size_t len;

	assert(object && strlen(m->json) == m->json_len && m->json_len <= SPEC_MAX_OBJECT);
	name = json_object_object_get(json_object_object_get(object, "metadata"), "name");
	assert(streq(json_object_get_string(name), m->id) && strlen(m->id) <= SPEC_MAX_NAME);
	spec_manifest_yaml(m, &yaml, &len);
	assert(strlen(yaml) == len);
	/* If it is larger or deeper than a document may be, it can't be read back. */
	if (spec_yaml_parse(yaml, len, &root, &e) == 0) {
		again = spec_yaml_to_json(root);
		assert(json_object_equal(object, again));
	}
	spec_errors_clear(&e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_pair options[] = {{(char[]){"queue"}, (char[]){"q"}}};
	struct spec_manifest_request rq = {
		.known = test_table_of_kinds(),
		.options = options,
		.home = "/var/empty",
		.identity = {.random = {UINT64_MAX, UINT64_MAX},
			     .namespace = "ns",
			     .submission = "uuid",
			     .submitter = "ada@login1",
			     .user = "ada"},
	};

	for (size_t i = 0; i < rq.known->n; i++) {
		cleanup(spec_manifest_freep) struct spec_manifest *m = NULL;
		struct spec_errors e = SPEC_ERRORS_INIT;
		int err;

		rq.kind = rq.known->v[i];
		rq.n_options = rq.kind == &spec_volcano;
		err = spec_manifest_make((const char *)data, size, &rq, &m, &e);
		assert((err == 0) == (m != NULL) && (err == 0) == (e.n == 0) && err == e.err);
		if (m)
			check_made(m);
		spec_errors_clear(&e);
	}
	return 0;
}
