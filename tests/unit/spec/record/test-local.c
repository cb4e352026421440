/* SPDX-License-Identifier: MIT */
/* AppDefs of local jobs: which are refused, and in which directory the jobs run. */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/record/local.h"
#include "tests/unit/unit.h"

/* Only the directory /there exists. */
static char *dir_error(void *data, const char *path)
{
	return streq(path, "/there") ? NULL : text_copy("is missing");
}

/* Assert that TEXT is accepted and its jobs run in DIR, or that it has ERRORS if DIR is NULL. */
static void check(const char *text, const char *dir, const char *errors)
{
	static const struct spec_machine machine = {.work_dir = "/w", .dir_error = dir_error};
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;
	struct spec_terms terms = {0};
	int err = spec_local_parse(text, strlen(text), &machine, &app, &terms, &e);
	cleanup_free char *got = spec_errors_text(&e, NULL);

	assert_messages(got, errors);
	assert_int_equal(err, dir ? 0 : -EINVAL);
	assert_true(streq(terms.dir, dir));
	spec_terms_clear(&terms);
	spec_app_free(app);
}

static void test_refused(void **state)
{
	check("apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nspec: {}\n", NULL,
	      "1:1: this is a Kubernetes manifest (kind: Job), which only a mount...\n");
	check("name: a\nkind: Job\nroles:\n- {name: r, image: i, entrypoint: e}\n", NULL,
	      "2:1: kind: unknown field...\n");
	check("- a\n", NULL, "1:1: must be a map, not a list; an AppDef begins with \"name: \"\n");
}

/*
 * A document for local or Volcano has the limit of Volcano's pod names. Documents for other kinds
 * don't have it.
 */
static void test_names(void **state)
{
#define LONG(scheduler)                                                                            \
	"name: a23456789012345678901234567890\nscheduler: " scheduler                              \
	"\nroles:\n- {name: r23456789012345678901234567890, image: i, entrypoint: e}\n"
#define TOO_LONG                                                                                   \
	"1:7: name: pods of role \"r23456789012345678901234567890\" would have names of 80 "       \
	"characters...\n"
	check(LONG("local"), NULL, TOO_LONG);
	check(LONG("volcano"), NULL, TOO_LONG);
	check(LONG("mcad"), "/w", "");
	check(LONG("appwrapper"), "/w", "");
}

#define APP "name: a\nroles: [{name: r, image: i, entrypoint: e}]\n"

/* A local job runs in the mount's directory, or in its own. Options of clusters do not matter. */
static void test_dir(void **state)
{
	check(APP, "/w", "");
	check(APP "scheduler_args: {cwd: /there}\n", "/there", "");
	check(APP "scheduler_args: {cwd: null}\n", "/w", "");
	check(APP "scheduler: local\nscheduler_args: {cwd: /there, queue: q, namespace: n}\n",
	      "/there", "");
	check(APP "scheduler: volcano\nscheduler_args: {cwd: /nowhere}\n", "/w", "");
	check(APP "scheduler_args:\n  cwd: there\n", NULL,
	      "4:8: scheduler_args.cwd: must be an absolute path\n");
	check(APP "scheduler_args: {cwd: ''}\n", NULL,
	      "3:23: scheduler_args.cwd: must be an absolute path\n");
	check(APP "scheduler_args: {cwd: [/there]}\n", NULL,
	      "3:23: scheduler_args.cwd: must be text, but is [ \"\\/there\" ]\n");
	check(APP "scheduler_args: {cwd: /nowhere}\n", NULL,
	      "3:23: scheduler_args.cwd: is missing\n");
	check(APP "scheduler_args: {cdw: /there}\n", NULL,
	      "3:23: scheduler_args.cdw: local has no such run option; did you mean cwd?\n");
}

/* Options of TorchX's local_cwd. tests/mount/test_submit.py has values that request nothing. */
static void test_torchx_options(void **state)
{
	check(APP "scheduler_args:\n  log_dir: /tmp/x\n  prepend_cwd: true\n"
		  "  auto_set_cuda_visible_devices: true\n",
	      NULL,
	      "4:12: scheduler_args.log_dir: is not supported...\n"
	      "5:16: scheduler_args.prepend_cwd: is not supported...\n"
	      "6:34: scheduler_args.auto_set_cuda_visible_devices: is not needed...\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_dir),
		cmocka_unit_test(test_torchx_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
