/* SPDX-License-Identifier: MIT */
/* The table of kinds, and the kinds' rules for AppDefs. */

#include <errno.h>

#include "spec/kinds/kinds.h"
#include "tests/unit/unit.h"
#include "tests/unit/table.h"

static void test_table(void **state)
{
	assert_ptr_equal(spec_kind_find(test_table_of_kinds(), "volcano"), &spec_volcano);
	assert_ptr_equal(spec_kind_find(test_table_of_kinds(), "mcad"), &spec_mcad);
	assert_null(spec_kind_find(test_table_of_kinds(), "local"));
	for (size_t i = 0; i < test_table_of_kinds()->n; i++) {
		const struct spec_kind *kind = test_table_of_kinds()->v[i];

		assert_ptr_equal(spec_kind_find(test_table_of_kinds(), kind->name), kind);
		assert_non_null(spec_option_find(kind->options, "no_annotations"));
		assert_null(spec_option_find(kind->options, "namespace"));
	}
}

/* Which schedulers a document may name on a mount of each kind. */
static void test_rules(void **state)
{
	static const struct {
		const char *scheduler;
		const struct spec_kind *kind;
		const char *errors;
	} table[] = {
		{"mcad", NULL, ""},
		{"local", NULL, ""},
		{"mcad", &spec_mcad, ""},
		{"mcad", &spec_appwrapper, ""},
		{"kubernetes_mcad", &spec_appwrapper, ""},
		{"kubernetes", &spec_mcad,
		 "2:12: scheduler: is volcano, but this mount submits jobs to mcad\n"},
		{"mcad", &spec_volcano,
		 "2:12: scheduler: is mcad, but this mount submits jobs to volcano\n"},
		{"local", &spec_mcad,
		 "2:12: scheduler: is local, but this mount submits jobs to mcad\n"},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
		cleanup_free char *errors = NULL, *text = NULL;
		struct spec_app_rules rules;
		struct spec_yaml *root = NULL;
		struct spec_app *app = NULL;

		text = text_print("name: a\nscheduler: %s\nroles:\n"
				  "- {name: r, image: i, entrypoint: e}\n",
				  table[i].scheduler);
		spec_kind_app_rules(&rules, table[i].kind, NULL);
		assert_int_equal(spec_yaml_parse(text, strlen(text), &root, &e), 0);
		spec_app_read(root, &rules, &app, &e);
		errors = spec_errors_text(&e, NULL);
		assert_string_equal(errors, table[i].errors);
		spec_app_free(app);
		spec_yaml_free(root);
	}
}

/*
 * Assert that a cluster which serves these VERSIONS of a group shows the kinds WANT, "-" for a slot
 * without a kind. SOURCE selects the slots. NULL: the versions are unknown.
 */
static void assert_served(const char *versions, const char *source, const char *want)
{
	cleanup_free char *list =
		versions ? text_print("{\"groups\":[{\"versions\":[%s]},{},7]}", versions) : NULL;
	const struct spec_kind *kinds[SPEC_MAX_KINDS];
	cleanup_free char *text = text_copy("");
	int n = spec_kinds_served(test_table_of_kinds(), list, list ? strlen(list) : 0, source,
				  kinds);

	/* There is a slot for each kind, but only one for both AppWrappers. */
	assert_int_equal(n, *source ? 1 : (int)test_table_of_kinds()->n - 1);
	for (int i = 0; i < n && i < 4; i++)
		text_set(&text, "%s%s%s", text, i ? " " : "", kinds[i] ? kinds[i]->name : "-");
	assert_string_equal(text, want);
}

/* Each slot shows its newest kind that the cluster serves, in the order of preference. */
static void test_served(void **state)
{
#define VERSION(api) "{\"groupVersion\":\"" api "\"}"
#define OLD	     VERSION("workload.codeflare.dev/v1beta1")
	const struct spec_kind *kinds[SPEC_MAX_KINDS];

	assert_served(VERSION("batch/v1") "," OLD "," VERSION("workload.codeflare.dev/v1beta2"), "",
		      "- appwrapper - job");
	assert_served(NULL, "", "volcano appwrapper jobset job");
	assert_served(OLD, "mcad", "mcad");
	assert_served(NULL, "mcad", "appwrapper");
	assert_int_equal(spec_kinds_served(test_table_of_kinds(), "{}", 2, "", kinds), -EINVAL);
	assert_int_equal(spec_kinds_served(test_table_of_kinds(), "<p>", 3, "", kinds), -EINVAL);
}

/* A word of SOURCE selects one slot, which may have several kinds. */
static void test_meant(void **state)
{
	assert_ptr_equal(spec_kind_meant(test_table_of_kinds(), "mcad", 0), &spec_mcad);
	assert_ptr_equal(spec_kind_meant(test_table_of_kinds(), "mcad", 1), &spec_appwrapper);
	assert_null(spec_kind_meant(test_table_of_kinds(), "mcad", 2));
	assert_ptr_equal(spec_kind_meant(test_table_of_kinds(), "appwrapper", 0), &spec_appwrapper);
	assert_null(spec_kind_meant(test_table_of_kinds(), "appwrapper", 1));
	assert_string_equal(spec_kinds_text(test_table_of_kinds(), ""), "jobs that kxfs can show");
	assert_string_equal(spec_kinds_text(test_table_of_kinds(), "mcad"), "AppWrappers");
}

/* An owner reference matches a kind by its group and kind, whatever its version is. */
static void test_makes(void **state)
{
	static const struct {
		const char *kind, *api, *of;
		bool makes;
	} table[] = {
		{"jobset", "jobset.x-k8s.io/v1alpha2", "JobSet", true},
		{"jobset", "jobset.x-k8s.io/v2", "JobSet", true},
		{"jobset", "jobset.example.com/v1alpha2", "JobSet", false},
		{"jobset", "jobset.x-k8s.io/v1alpha2", "JobSets", false},
		{"job", "batch/v1", "CronJob", false},
		{"volcano", "batch/v1", "Job", false},
		{"job", "batch.volcano.sh/v1alpha1", "Job", false},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *json = text_print(
			"{\"metadata\":{\"name\":\"a\",\"uid\":\"u\",\"ownerReferences\":[{"
			"\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"o\",\"uid\":\"o\","
			"\"controller\":true}]}}",
			table[i].api, table[i].of);
		struct spec_job_view *v;

		assert_int_equal(spec_job_view_parse(test_kind("job")->reader, json, strlen(json),
						     &v),
				 0);
		assert_int_equal(spec_kind_makes(test_kind(table[i].kind), v), table[i].makes);
		spec_job_view_free(v);
	}
}

/* To which of several kinds a pod's job belongs. If to none, the pod has no job. */
#define OF_SET(name)                                                                               \
	"\"jobset.sigs.k8s.io/jobset-uid\":\"s\",\"jobset.sigs.k8s.io/jobset-name\":\"" name       \
	"\",\"jobset.sigs.k8s.io/replicatedjob-name\":\"r\",\"jobset.sigs.k8s.io/job-index\":\"0\""

static void test_owners(void **state)
{
	const struct spec_kind *const kinds[] = {&spec_volcano, &spec_appwrapper,
						 test_kind("jobset"), test_kind("job")};
	static const struct {
		const char *api, *kind, *labels, *owner;
	} cases[] = {
		{"batch/v1", "Job", "", "o"},
		{"batch/v1", "Job", OF_SET("set"), "s"},
		/* The labels were copied from a pod of another job. */
		{"batch/v1", "Job", OF_SET("copied"), "o"},
		{"apps/v1", "ReplicaSet", OF_SET("set"), ""},
		{"batch.volcano.sh/v1alpha1", "Job", "", "o"},
		{"workload.codeflare.dev/v1beta2", "AppWrapper", "", "o"},
		{"apps/v1", "ReplicaSet", "", ""},
		{"batch/v1", "CronJob", "", ""},
	};
	const struct spec_reader *readers[array_size(kinds)];
	const struct spec_pod_readers all = {.v = readers, .n = array_size(readers)};

	for (size_t i = 0; i < array_size(kinds); i++)
		readers[i] = kinds[i]->reader;
	for (size_t i = 0; i < array_size(cases); i++) {
		struct spec_pod_view *v;
		char json[1024];

		snprintf(
			json, sizeof(json),
			"{\"metadata\":{\"name\":\"p\",\"uid\":\"p\",\"labels\":{%s},\"ownerReferences\":[{"
			"\"apiVersion\":\"%s\",\"kind\":\"%s\",\"name\":\"set-r-0\",\"uid\":\"o\","
			"\"controller\":true}]}}",
			cases[i].labels, cases[i].api, cases[i].kind);
		assert_int_equal(spec_pod_view_parse(&all, json, strlen(json), &v), 0);
		assert_string_equal(v->meta.owner_uid, cases[i].owner);
		spec_pod_view_free(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),  cmocka_unit_test(test_rules),
		cmocka_unit_test(test_served), cmocka_unit_test(test_meant),
		cmocka_unit_test(test_makes),  cmocka_unit_test(test_owners),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
