/* SPDX-License-Identifier: MIT */
/*
 * Which kind a dry run uses: that of the source, or else that of the document. Also: which run
 * options count.
 */
#include "spec/record/dry_run.h"
#include "tests/unit/table.h"
#include "tests/unit/unit.h"

#define APP	 "name: a\n" ROLES "\n"
#define ROLES	 "roles: [{name: r, image: i, entrypoint: e}]"
#define MANIFEST "apiVersion: batch.volcano.sh/v1alpha1\nkind: Job\nmetadata: {name: x}\n"

/* Return the manifest of TEXT for BACKEND, with "-o queue=q" if QUEUE, or the errors. */
static char *make(const char *backend, const char *text, bool queue)
{
	static char key[] = "queue", value[] = "q";
	struct spec_pair option = {key, value};
	struct spec_dry_run d = {
		.kinds = test_table_of_kinds(),
		.backend = backend,
		.namespace = "",
		.args = &option,
		.n_args = queue,
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
	return ret;
}

static void test_kinds(void **state)
{
	static const struct {
		const char *backend;
		bool queue; /* the mount or the command line has -o queue=q */
		const char *text, *wanted;
	} rows[] = {
		/* the source names the kind */
		{"volcano", true, APP, "\n  queue: q\n"},
		{"mcad", false, APP, "\nkind: AppWrapper\n"},
		{"mcad", false, "scheduler: volcano\n" APP,
		 "a.yaml:1:12: scheduler: is volcano, but this mount submits jobs to mcad"},
		{"mcad", true, APP, "a.yaml: -o queue: mcad has no such run option"},
		{"local", false, APP, "\nwork_dir: /w\n"},
		{"local", false, "scheduler_args: {cwd: /x}\n" APP, "\nwork_dir: /x\n"},
		/*
		 * The document names it. The options of a local mount apply to all kinds, but those
		 * in a document only to its own kind.
		 */
		{"local", true, "scheduler: volcano\n" APP, "\n  queue: q\n"},
		{"local", true, "scheduler: mcad\n" APP, "\nkind: AppWrapper\n"},
		{"local", false, MANIFEST, "\n  name: x\n"},
		{"", true, "scheduler: volcano\n" APP, "\n  queue: q\n"},
		{"", true, "scheduler: mcad\n" APP,
		 "a.yaml: -o queue: mcad has no such run option"},
		{"", false, "scheduler: jobset\n" APP,
		 "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"},
		{"", false, "scheduler: local\n" APP, "\nfile: a.yaml\n"},
		{"", false, MANIFEST, "\n  name: x\n"},
		{"", false, APP, "a.yaml: scheduler: is missing"},
		/* output of TorchX */
		{"", false, "scheduler: kubernetes_mcad\n" APP, "\nkind: AppWrapper\n"},
		{"", false, "cfg: {queue: r}\nscheduler: kubernetes\napp: {name: a, " ROLES "}\n",
		 "\n  queue: r\n"},
		{"volcano", true,
		 "cfg: {queue: null}\nscheduler: kubernetes\napp: {name: a, " ROLES "}\n"
		 "request: {}\n",
		 "\n  queue: q\n"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_free char *got = make(rows[i].backend, rows[i].text, rows[i].queue);

		if (!strstr(got, rows[i].wanted))
			fail_msg("%zu: %s is not in: %s", i, rows[i].wanted, got);
	}
}

/* All errors are reported together, as on a mount of that kind. */
static void test_errors(void **state)
{
	static const char text[] = "scheduler: volcano\nname: a\nname: b\nscheduler_args: {x: 1}\n"
				   "roles: [{name: r, image: i, entrypoint: e, more: 1}]\n";
	cleanup_free char *by_document = make("local", text, false);
	cleanup_free char *by_source = make("volcano", text, false);

	assert_string_equal(by_document, by_source);
	assert_non_null(strstr(by_source, "more: unknown field"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
