/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as YAML. kxfs must write what it has read as YAML with the same value, in every style,
 * also from a tree that was built from the value. A refused text gets an error.
 */
#include "fuzz.h"

#include "spec/base/limits.h"
#include "spec/yaml/yaml.h"

static void check_round_trip(struct json_object *value, unsigned flow_depth)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct json_object *again = NULL;
	struct spec_yaml *root = NULL;
	size_t len;
	char *text;

	spec_yaml_emit(value, flow_depth, &text, &len);
	assert(strlen(text) == len);
	/* escapes and indentation may make it larger than the limit for files */
	if (len <= SPEC_MAX_FILE) {
		assert(spec_yaml_parse(text, len, &root, &e) == 0);
		again = spec_yaml_to_json(root);
		assert(json_object_equal(value, again));
	}
	json_object_put(again);
	spec_yaml_free(root);
	spec_errors_clear(&e);
	free(text);
}

/* Return the only document of TEXT as kubectl reads it, or NULL if it is refused or null. */
static struct json_object *object_of(const char *text, size_t len)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup(spec_yaml_freep) struct spec_yaml *documents = NULL;
	struct json_object *ret = NULL;
	int err = spec_yaml_parse_all(text, len, &documents, &e);

	assert(err == e.err && (err < 0) == (e.n > 0) && (err < 0 || documents));
	for (size_t i = 0; documents && i < documents->n; i++) {
		json_object_put(ret);
		ret = NULL;
		spec_yaml_finish(documents->v[i], SPEC_YAML_KUBECTL, &e);
		err = spec_yaml_to_object(documents->v[i], &ret, &e);
		assert(err == 0 || (!ret && e.n > 0));
	}
	if (e.err || !documents || documents->n > 1) {
		json_object_put(ret);
		ret = NULL;
	}
	return ret;
}

/* Assert that an object, once written, is the same object for kubectl. */
static void check_object(const char *data, size_t size)
{
	struct json_object *object = object_of(data, size), *again;
	char *text cleanup_free = NULL;
	size_t len;

	if (!object)
		return;
	spec_yaml_emit(object, 0, &text, &len);
	if (len <= SPEC_MAX_FILE) {
		again = object_of(text, len);
		assert(json_object_equal(object, again));
		json_object_put(again);
	}
	json_object_put(object);
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
		value = spec_yaml_to_json(root);
		/*
		 * A null that only its tag shows would be written without the tag, and then is not
		 * a document.
		 */
		if (err == 0 && value) {
			check_round_trip(value, 0);
			check_round_trip(value, 1);
			check_round_trip(value, 3);
		}
	}
	json_object_put(value);
	spec_yaml_free(root);
	spec_errors_clear(&e);
	free(text);
	check_object((const char *)data, size);
	return 0;
}
