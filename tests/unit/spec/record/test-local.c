/* SPDX-License-Identifier: MIT */
/* AppDefs of local jobs: which are refused, and in which directory the jobs run. */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/record/local.h"
#include "tests/unit/unit.h"

/*
 * A document for local or Volcano has the limit of Volcano's pod names. Documents for other kinds
 * don't have it.
 */
static void test_names(void **state)
{
	static const char text[] =
		"name: a23456789012345678901234567890\nscheduler: %s\nroles:\n"
		"- {name: r23456789012345678901234567890, image: i, entrypoint: e}\n";
	static const char *const names[] = {"volcano", "local", "mcad", "appwrapper"};

	for (size_t i = 0; i < array_size(names); i++) {
		static const struct spec_machine machine = {.work_dir = "/w"};
		struct spec_errors e = SPEC_ERRORS_INIT;
		struct spec_app *app = NULL;
		struct spec_terms terms = {0};
		char document[200];

		snprintf(document, sizeof(document), text, names[i]);
		assert_int_equal(spec_local_parse(document, strlen(document), &machine, &app,
						  &terms, &e),
				 i < 2 ? -EINVAL : 0);
		spec_terms_clear(&terms);
		spec_app_free(app);
		spec_errors_clear(&e);
	}
}

/* Report all directories except DATA as missing. */
static char *dir_error(void *data, const char *path)
{
	return streq(path, data) ? NULL : text_copy("is missing");
}

static char there[] = "/there";
static const struct spec_machine machine = {
	.work_dir = "/w",
	.dir_error = dir_error,
	.data = there,
};

static void check_local(const char *text, int err, const char *expected)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	struct spec_terms terms = {0};
	char *errors;

	assert_int_equal(spec_local_parse(text, strlen(text), &machine, &app, &terms, &e), err);
	errors = spec_errors_text(&e, NULL);
	assert_string_equal(errors, expected);
	free(errors);
	spec_terms_clear(&terms);
	spec_app_free(app);
	spec_errors_clear(&e);
}

static void test_local(void **state)
{
	check_local("name: a\nroles:\n- {name: r, image: i, entrypoint: e}\n", 0, "");
	check_local("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {}\n", -EINVAL,
		    "1:1: this is a Kubernetes manifest (kind: Job), which only a mount of a "
		    "cluster can submit; write an AppDef instead, see appdef(5)\n");
	check_local("apiVersion: v1\nkind: Pod\nspec: {}\n", -EINVAL,
		    "1:1: this is a Kubernetes manifest (kind: Pod), which only a mount of a "
		    "cluster can submit; write an AppDef instead, see appdef(5)\n");
	check_local(
		"name: a\nkind: Job\nroles:\n- {name: r, image: i, entrypoint: e}\n", -EINVAL,
		"2:1: kind: unknown field; the fields here are name, roles, metadata, scheduler, "
		"scheduler_args\n");
	check_local("- a\n", -EINVAL,
		    "1:1: must be a map, not a list; an AppDef begins with \"name: \"\n");
}

#define APP "name: a\nroles: [{name: r, image: i, entrypoint: e}]\n"

static void assert_dir(const char *text, const char *wanted)
{
	struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	struct spec_terms terms = {0};

	assert_int_equal(spec_local_parse(text, strlen(text), &machine, &app, &terms, &e), 0);
	assert_string_equal(terms.dir, wanted);
	spec_terms_clear(&terms);
	spec_app_free(app);
	spec_errors_clear(&e);
}

/* A local job runs in the mount's directory, or in its own. Options of clusters do not matter. */
static void test_dir(void **state)
{
	assert_dir(APP, "/w");
	assert_dir(APP "scheduler_args: {cwd: /there}\n", "/there");
	assert_dir(APP "scheduler_args: {cwd: null}\n", "/w");
	assert_dir(APP "scheduler: local\nscheduler_args: {cwd: /there, queue: q, namespace: n}\n",
		   "/there");
	assert_dir(APP "scheduler: volcano\nscheduler_args: {cwd: /nowhere}\n", "/w");
	check_local(APP "scheduler_args:\n  cwd: there\n", -EINVAL,
		    "4:8: scheduler_args.cwd: must be an absolute path\n");
	check_local(APP "scheduler_args: {cwd: ''}\n", -EINVAL,
		    "3:23: scheduler_args.cwd: must be an absolute path\n");
	check_local(APP "scheduler_args: {cwd: [/there]}\n", -EINVAL,
		    "3:23: scheduler_args.cwd: must be text, but is [ \"\\/there\" ]\n");
	check_local(APP "scheduler_args: {cwd: /nowhere}\n", -EINVAL,
		    "3:23: scheduler_args.cwd: is missing\n");
	check_local(APP "scheduler_args: {cdw: /there}\n", -EINVAL,
		    "3:23: scheduler_args.cdw: local has no such run option; did you mean cwd?\n");
}

/* Options of TorchX's local_cwd are accepted with values that request nothing. */
static void test_torchx_options(void **state)
{
	assert_dir(APP "scheduler_args: {log_dir: null, prepend_cwd: false,"
		       " auto_set_cuda_visible_devices: false}\n",
		   "/w");
	check_local(APP "scheduler_args:\n  log_dir: /tmp/x\n  prepend_cwd: true\n"
			"  auto_set_cuda_visible_devices: true\n",
		    -EINVAL,
		    "4:12: scheduler_args.log_dir: is not supported: kxfs shows the output of a "
		    "job in jobs/ID/log\n"
		    "5:16: scheduler_args.prepend_cwd: is not supported: write ./PROGRAM, or set "
		    "PATH in env\n"
		    "6:34: scheduler_args.auto_set_cuda_visible_devices: is not needed: -o gpus=N "
		    "gives each replica its own GPUs\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_local),
		cmocka_unit_test(test_dir),
		cmocka_unit_test(test_torchx_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
