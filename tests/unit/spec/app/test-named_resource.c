/* SPDX-License-Identifier: MIT */
/* Compares the table of named resources with TorchX's own table, as recorded in tests/golden/. */
#include <errno.h>
#include <json-c/json.h>
#include <strings.h>

#include "spec/app/app_value.h"
#include "tests/unit/spec/app-document.h"
#include "tests/unit/unit.h"

static struct json_object *golden(const char *version)
{
	char *path cleanup_free = text_print(TEST_GOLDEN "/named-resources-%s.json", version);
	struct json_object *ret = json_object_from_file(path);

	assert_non_null(ret);
	return ret;
}

/* Assert that an AppDef's role with the resource NAME has WANT in its JSON form. */
static void assert_same(const char *name, struct json_object *want)
{
	char *text cleanup_free =
		text_print("name: a\nroles: [{name: r, image: i, entrypoint: e, resource: %s}]\n",
			   name);
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app cleanup(spec_app_freep) = NULL;
	char *json cleanup_free = NULL;
	struct json_object *tree, *got;

	assert_int_equal(document_parse(text, strlen(text), NULL, &app, &e), 0);
	json = spec_app_json(app);
	tree = json_tokener_parse(json);
	got = json_object_object_get(tree, "roles");
	got = json_object_object_get(json_object_array_get_idx(got, 0), "resource");
	if (!json_object_equal(got, want))
		fail_msg("%s: %s", name, json_object_to_json_string(got));
	json_object_put(tree);
}

static void test_as_torchx(void **state)
{
	struct json_object *old = golden("0.7.0"), *newer = golden("nightly");
	size_t n = 0;

	json_object_object_foreach(old, name, value) {
		assert_same(name, value);
		n++;
	}
	json_object_object_foreach(newer, new_name, new_value) {
		if (json_object_object_get_ex(old, new_name, NULL))
			continue;
		assert_same(new_name, new_value);
		n++;
	}
	/* There are no others, except the two names of the null resource. */
	assert_non_null(document_resource_name(n + 1));
	assert_null(document_resource_name(n + 2));
	json_object_put(old);
	json_object_put(newer);
}

static void test_null_resource(void **state)
{
	struct json_object *unset = json_tokener_parse(
		"{\"cpu\":-1,\"gpu\":-1,\"memMB\":-1,\"capabilities\":{},\"devices\":{}}");

	assert_same("'NULL'", unset);
	assert_same("MISSING", unset);
	json_object_put(unset);
}

/* Case does not matter. The names differ even if case is ignored. */
static void test_case(void **state)
{
	struct spec_resource r = {0};
	const char *suggestion;

	assert_int_equal(spec_named_resource("AWS_P4d.24XLarge", &r, &suggestion), 0);
	assert_int_equal(r.gpu, 8);
	assert_string_equal(r.capabilities.v[0].value, "p4d.24xlarge");
	spec_resource_clear(&r);
	for (size_t i = 0; document_resource_name(i); i++) {
		cleanup_free char *name = text_copy(document_resource_name(i));

		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(strcasecmp(name, document_resource_name(j)), 0);
	}
}

static void test_unknown(void **state)
{
	static const char *const rows[][2] = {
		{"aws_p4d.24xlrage", "aws_p4d.24xlarge"},
		{"gpu.smal", "gpu.small"},
		{"a very large machine", NULL},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		struct spec_resource r = {0};
		const char *suggestion;

		assert_int_equal(spec_named_resource(rows[i][0], &r, &suggestion), -ENOENT);
		assert_true(streq(suggestion, rows[i][1]));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_torchx),
		cmocka_unit_test(test_null_resource),
		cmocka_unit_test(test_case),
		cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
