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
	char *path cleanup_free = NULL;
	struct json_object *ret;

	assert_true(asprintf(&path, TEST_GOLDEN "/named-resources-%s.json", version) > 0);
	ret = json_object_from_file(path);
	assert_non_null(ret);
	return ret;
}

static struct json_object *member(struct json_object *o, const char *key)
{
	struct json_object *ret;

	assert_true(json_object_object_get_ex(o, key, &ret));
	return ret;
}

static void assert_same(const char *name, struct json_object *want)
{
	struct json_object *capabilities = member(want, "capabilities");
	struct json_object *devices = member(want, "devices");
	struct spec_resource r = {0};
	const char *suggestion;

	assert_int_equal(spec_named_resource(name, &r, &suggestion), 0);
	assert_int_equal(r.cpu, json_object_get_int(member(want, "cpu")));
	assert_int_equal(r.gpu, json_object_get_int(member(want, "gpu")));
	assert_int_equal(r.mem_mb, json_object_get_int(member(want, "memMB")));
	assert_int_equal(r.capabilities.n, json_object_object_length(capabilities));
	for (size_t i = 0; i < r.capabilities.n; i++)
		assert_string_equal(r.capabilities.v[i].value,
				    json_object_get_string(
					    member(capabilities, r.capabilities.v[i].key)));
	assert_int_equal(r.devices.n, json_object_object_length(devices));
	for (size_t i = 0; i < r.devices.n; i++)
		assert_int_equal(r.devices.v[i].value,
				 json_object_get_int(member(devices, r.devices.v[i].key)));
	spec_resource_clear(&r);
	assert_null(r.devices.v);
}

static void test_as_torchx(void **state)
{
	struct json_object *old = golden("0.7.0");
	struct json_object *newer = golden("nightly");
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
	static const char *const names[] = {"NULL", "MISSING"};
	const char *suggestion;

	for (size_t i = 0; i < array_size(names); i++) {
		struct spec_resource r = {0};

		assert_int_equal(spec_named_resource(names[i], &r, &suggestion), 0);
		assert_true(r.cpu < 0 && r.gpu < 0 && r.mem_mb < 0);
		assert_int_equal(r.capabilities.n + r.devices.n, 0);
		spec_resource_clear(&r);
	}
}

static void test_case(void **state)
{
	struct spec_resource r = {0};
	const char *suggestion;

	assert_int_equal(spec_named_resource("AWS_P4d.24XLarge", &r, &suggestion), 0);
	assert_int_equal(r.gpu, 8);
	assert_string_equal(r.capabilities.v[0].value, "p4d.24xlarge");
	spec_resource_clear(&r);

	/* The names differ even if case is ignored. */
	for (size_t i = 0; document_resource_name(i); i++) {
		cleanup_free char *name = text_copy(document_resource_name(i));

		for (size_t j = 0; j < i; j++)
			assert_int_not_equal(strcasecmp(name, document_resource_name(j)), 0);
	}
}

static void test_unknown(void **state)
{
	struct spec_resource r = {0};
	const char *suggestion;

	assert_int_equal(spec_named_resource("aws_p4d.24xlrage", &r, &suggestion), -ENOENT);
	assert_string_equal(suggestion, "aws_p4d.24xlarge");
	assert_int_equal(spec_named_resource("gpu.smal", &r, &suggestion), -ENOENT);
	assert_string_equal(suggestion, "gpu.small");
	assert_int_equal(spec_named_resource("a very large machine", &r, &suggestion), -ENOENT);
	assert_null(suggestion);
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
