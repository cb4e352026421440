/* SPDX-License-Identifier: MIT */
/*
 * Macro replacement, compared with a table of results of Python 3.11's
 * string.Template(text).safe_substitute(...).
 */
#include "spec/app/app.h"
#include "tests/unit/unit.h"

static const struct spec_macros macros = {
	.app_id = "app-x1",
	.replica_id = "7",
	.img_root = "",
	.base_img_root = "DEPRECATED",
	.rank0_env = "TORCHX_RANK0_HOST",
};

static const char *const table[][2] = {
	{"", ""},
	{"$", "$"},
	{"$$", "$"},
	{"$$$", "$$"},
	{"$app_id", "app-x1"},
	{"${app_id}", "app-x1"},
	{"${app_id}-${replica_id}", "app-x1-7"},
	{"$app_idx", "$app_idx"},
	{"${app_id}x", "app-x1x"},
	{"$APP_ID", "$APP_ID"},
	{"${APP_ID}", "${APP_ID}"},
	{"$$app_id", "$app_id"},
	{"$${app_id}", "${app_id}"},
	{"${app_id", "${app_id"},
	{"${ app_id}", "${ app_id}"},
	{"${}", "${}"},
	{"$ {app_id}", "$ {app_id}"},
	{"$1", "$1"},
	{"$_", "$_"},
	{"${_x}", "${_x}"},
	{"$(app_id)", "$(app_id)"},
	{"$img_root/bin", "/bin"},
	{"$${rank0_env}", "${rank0_env}"},
	{"${${app_id}}", "${app-x1}"},
	{"${$app_id}", "${app-x1}"},
	{"$app_id\303\251", "app-x1\303\251"},
	{"$\303\251app_id", "$\303\251app_id"},
	{"$\304\260", "$\304\260"},
	{"$app_id\342\204\252", "app-x1\342\204\252"},
	{"$app\304\261d", "$app\304\261d"},
	{"50$ and $replica_id", "50$ and 7"},
	{"${replica_id}0", "70"},
	{"$\n$app_id", "$\napp-x1"},
	{"$$(pidof x)", "$(pidof x)"},
	{"$macros", "$macros"},
	{"$\t$$\t$", "$\t$\t$"},
};

static void test_as_python(void **state)
{
	for (size_t i = 0; i < array_size(table); i++) {
		char *got cleanup_free = spec_macro_expand(table[i][0], &macros);

		assert_string_equal(got, table[i][1]);
	}
}

/* A value that looks like a macro is not replaced again. */
static void test_one_pass(void **state)
{
	struct spec_macros m = macros;
	char *got cleanup_free = NULL;

	m.app_id = "${replica_id}$$$app_id";
	got = spec_macro_expand("<$app_id>", &m);
	assert_string_equal(got, "<${replica_id}$$$app_id>");
}

static void test_unset_is_unknown(void **state)
{
	struct spec_macros m = {.app_id = "a"};
	char *got cleanup_free = spec_macro_expand("$app_id $rank0_env ${img_root}", &m);

	assert_string_equal(got, "a $rank0_env ${img_root}");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_python),
		cmocka_unit_test(test_one_pass),
		cmocka_unit_test(test_unset_is_unknown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
