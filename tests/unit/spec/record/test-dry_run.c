/* SPDX-License-Identifier: MIT */
/*
 * Which kind a dry run uses: that of the source, or else that of the document. Also: which run
 * options count.
 */

#include "spec/record/dry_run.h"
#include "tests/unit/unit.h"
#include "tests/unit/table.h"

#define ROLES1 "roles: [{name: r, image: i, entrypoint: e}]"
#define ROLES  ROLES1 "\n"

/* Return the first lines of the manifest of TEXT for BACKEND with "-o KEY=VALUE", or the errors. */
static char *make(const char *backend, const char *text, const char *key, const char *value)
{
	struct spec_pair option = {(char *)(uintptr_t)key, (char *)(uintptr_t)value};
	struct spec_dry_run d = {
		.kinds = test_table_of_kinds(),
		.backend = backend,
		.namespace = "",
		.args = &option,
		.n_args = key ? 1 : 0,
		.file = "a.yaml",
		.submitter = "ada@login1",
		.machine.work_dir = "/w",
		.now = INT64_C(1700000000000000000),
		.random = {.name = {1, 2}},
	};
	struct spec_errors e = SPEC_ERRORS_INIT;
	char *ret = NULL;
	size_t len;
	int err = spec_dry_run(&d, text, strlen(text), &ret, &len, &e);

	assert_int_equal(err, e.err);
	if (err)
		ret = spec_errors_text(&e, d.file);
	else
		assert_int_equal(strlen(ret), len);
	spec_errors_clear(&e);
	assert_non_null(ret);
	return ret;
}

static void assert_made(const char *backend, const char *text, const char *key, const char *value,
			const char *wanted)
{
	char *got = make(backend, text, key, value);

	if (!strstr(got, wanted))
		fail_msg("%s is not in: %s", wanted, got);
	free(got);
}

static void test_source_decides(void **state)
{
	assert_made("volcano", "name: a\n" ROLES, "queue", "q", "\n  queue: q\n");
	assert_made("mcad", "name: a\n" ROLES, NULL, NULL, "\nkind: AppWrapper\n");
	assert_made("local", "name: a\n" ROLES, NULL, NULL, "\nwork_dir: /w\n");
	assert_made("local", "name: a\nscheduler_args: {cwd: /x}\n" ROLES, NULL, NULL,
		    "\nwork_dir: /x\n");
	assert_made("", "name: a\nscheduler: kubernetes_mcad\n" ROLES, NULL, NULL,
		    "\nkind: AppWrapper\n");
	assert_made("", "cfg: {queue: q}\nscheduler: kubernetes\napp: {name: a, " ROLES1 "}\n",
		    NULL, NULL, "\n  queue: q\n");
	assert_made("volcano",
		    "cfg: {queue: q, service_account: null}\nscheduler: kubernetes\n"
		    "app: {name: a, " ROLES1 "}\nrequest: {}\n",
		    "service_account", "mine", "\n        serviceAccountName: mine\n");
	assert_made("mcad", "scheduler: volcano\nname: a\n" ROLES, NULL, NULL,
		    "a.yaml:1:12: scheduler: is volcano, but this mount submits jobs to mcad");
}

static void test_document_decides(void **state)
{
	for (size_t i = 0; i < 2; i++) {
		const char *backend = i ? "local" : "";

		assert_made(backend, "scheduler: volcano\nname: a\n" ROLES, "queue", "q",
			    "\n  queue: q\n");
		assert_made(backend, "scheduler: jobset\nname: a\n" ROLES, NULL, NULL,
			    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n");
		assert_made(backend, "scheduler: mcad\nname: a\n" ROLES, NULL, NULL,
			    "\nkind: AppWrapper\n");
		assert_made(backend, "scheduler: local\nname: a\n" ROLES, NULL, NULL,
			    "\nfile: a.yaml\n");
		assert_made(backend,
			    "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\n"
			    "metadata: {name: x}\n",
			    NULL, NULL, "\n  name: x\n");
	}
	assert_made("", "name: a\n" ROLES, NULL, NULL, "a.yaml: scheduler: is missing");
}

/* All errors are reported together, as on a mount of that kind. */
static void test_errors(void **state)
{
	static const char text[] = "scheduler: volcano\nname: a\nname: b\nscheduler_args: {x: 1}\n"
				   "roles: [{name: r, image: i, entrypoint: e, more: 1}]\n";
	char *by_document = make("local", text, NULL, NULL);
	char *by_source = make("volcano", text, NULL, NULL);

	assert_string_equal(by_document, by_source);
	assert_non_null(strstr(by_source, "more: unknown field"));
	free(by_document);
	free(by_source);
}

static void test_options(void **state)
{
	/*
	 * The options of a local mount apply to all kinds. Those in a document apply only to its
	 * own kind.
	 */
	assert_made("local", "scheduler: mcad\nname: a\n" ROLES, "queue", "q",
		    "\nkind: AppWrapper\n");
	assert_made("", "scheduler: mcad\nname: a\n" ROLES, "queue", "q",
		    "a.yaml: -o queue: mcad has no such run option");
	assert_made("mcad", "name: a\n" ROLES, "queue", "q",
		    "a.yaml: -o queue: mcad has no such run option");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_source_decides),
		cmocka_unit_test(test_document_decides),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_options),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
