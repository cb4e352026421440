/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as YAML. What is read must come back from our own writer as the same value, in every
 * style, and from a tree that is made of the value; what is refused must come with an error.
 */
/* asserts are what this is for, in every kind of build */
#undef NDEBUG
#include <assert.h>
#include <json-c/json.h>

#include "spec/base/limits.h"
#include "spec/yaml/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_round_trip(struct json_object *value, unsigned flow_depth)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct json_object *again = NULL;
	struct spec_yaml *root = NULL;
	size_t len;
	char *text;

	spec_yaml_emit(value, flow_depth, &text, &len);
	assert(strlen(text) == len);
	/* escapes and indentation may carry it beyond the bound of files */
	if (len <= SPEC_MAX_FILE) {
		assert(spec_yaml_parse(text, len, &root, &e) == 0);
		spec_yaml_to_json(root, &again);
		assert(json_object_equal(value, again));
	}
	json_object_put(again);
	spec_yaml_free(root);
	spec_errors_clear(&e);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct json_object *value = NULL;
	struct spec_yaml *root = NULL;
	int err = spec_yaml_parse((const char *)data, size, &root, &e);
	char *text = spec_errors_text(&e, "file");

	assert(text);
	assert(err == e.err && (err < 0) == (e.n > 0));
	if (root) {
		spec_yaml_to_json(root, &value);
		if (err == 0) {
			check_round_trip(value, 0);
			check_round_trip(value, 1);
			check_round_trip(value, 3);
		}
	}
	json_object_put(value);
	spec_yaml_free(root);
	spec_errors_clear(&e);
	free(text);
	return 0;
}
