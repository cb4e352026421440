/* SPDX-License-Identifier: MIT */
/*
 * The table of kinds, and what AppDefs are told of it.
 */

#include "spec/kinds/kinds.h"
#include "tests/unit/unit.h"

static void test_table(void **state)
{
	assert_ptr_equal(spec_kind_find("volcano"), &spec_volcano);
	assert_ptr_equal(spec_kind_find("mcad"), &spec_mcad);
	assert_null(spec_kind_find("local"));
	for (size_t i = 0; spec_kind_at(i); i++) {
		const struct spec_kind *kind = spec_kind_at(i);

		assert_ptr_equal(spec_kind_find(kind->name), kind);
		assert_non_null(spec_option_find(kind->options, "no_annotations"));
		assert_null(spec_option_find(kind->options, "namespace"));
	}
}

/* Reading an AppDef for KIND says EXPECTED; "": it is accepted. */
static void check_read(const char *text, const struct spec_kind *kind, const char *expected)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app_rules rules;
	struct spec_yaml *root = NULL;
	struct spec_app *app = NULL;
	char *errors;

	spec_kind_app_rules(&rules, kind, NULL);
	assert_int_equal(spec_yaml_parse(text, strlen(text), &root, &e), 0);
	spec_app_read(root, &rules, &app, &e);
	errors = spec_errors_text(&e, NULL);
	assert_string_equal(errors, expected);
	free(errors);
	spec_app_free(app);
	spec_yaml_free(root);
	spec_errors_clear(&e);
}

/* Which schedulers a document may name for a mount of each kind. */
static void test_rules(void **state)
{
	static const char mcad[] =
		"name: a\nscheduler: mcad\nroles:\n- {name: r, image: i, entrypoint: e}\n";
	static const char local[] =
		"name: a\nscheduler: local\nroles:\n- {name: r, image: i, entrypoint: e}\n";

	check_read(mcad, NULL, "");
	check_read(local, NULL, "");
	check_read(mcad, &spec_mcad, "");
	check_read(mcad, &spec_appwrapper, "");
	check_read("name: a\nscheduler: kubernetes_mcad\nroles:\n"
		   "- {name: r, image: i, entrypoint: e}\n",
		   &spec_appwrapper, "");
	check_read("name: a\nscheduler: kubernetes\nroles:\n"
		   "- {name: r, image: i, entrypoint: e}\n",
		   &spec_mcad, "2:12: scheduler: is volcano, but jobs are run by mcad here\n");
	check_read(mcad, &spec_volcano,
		   "2:12: scheduler: is mcad, but jobs are run by volcano here\n");
	check_read(local, &spec_mcad, "2:12: scheduler: is local, but jobs are run by mcad here\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
