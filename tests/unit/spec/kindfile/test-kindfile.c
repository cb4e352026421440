/* SPDX-License-Identifier: MIT */
/*
 * Kind files: each mistake is reported where it is. Also: roles that are derived from pods, and
 * statuses that no recording contains. tests/replay/test_kind_files.py tests ctl.
 */
#include "spec/kindfile/kindfile.h"

#include "spec/kinds/kinds.h"
#include "tests/unit/spec/kindfile/mutants.h"
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

/* --- mistakes --- */

#define HEAD   "format: kxfs-kind/1\nname: foo\nobject: {api: foo.io/v1, kind: Foo, plural: foos}\n"
#define ROLES  "roles: [{name: a, replicas: .spec.n, template: .spec.template}]\n"
#define STATES "states: [{if: {condition: Done}, is: succeeded}]\n"

/* Assert that TEXT has the errors EXPECTED, which lack the file's name. */
static void check(const char *text, const char *expected)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *errors = NULL;
	struct spec_kind *kind;
	int err = spec_kind_file_read(text, strlen(text), NULL, &kind, &e);

	assert_int_equal(err, e.err);
	errors = spec_errors_text(&e, NULL);
	assert_messages(errors, expected);
	assert_int_equal(kind == NULL, *expected != '\0');
	spec_kind_file_free(kind);
}

#define ROLE(members)  HEAD "roles: [{" members "}]\n" STATES
#define STATE(members) HEAD ROLES "states: [{" members "}]\n"
#define WHOLE	       HEAD ROLES STATES

static void test_mistakes(void **state)
{
	static const char *const rows[][2] = {
		{WHOLE, ""},
		{HEAD ROLES "states:\n- {if: {condition: Done}, is: finished}\n",
		 "6:31: states[0].is: \"finished\" is not a state; use one of pending...\n"},
		{ROLE("name: a, repicas: 1, template: .spec.template"),
		 "4:9: roles[0]: replicas is missing\n"
		 "4:19: roles[0].repicas: no such key; did you mean replicas?\n"},
		{ROLE("replicas: 1, default: 1, template: .spec.template"),
		 "4:23: roles[0].default: no such key; the keys here are each, if, name, replicas, "
		 "times, copies, template, grows\n"},
		{ROLE("name: a, replicas: .spec..n, template: .spec.template"),
		 "4:29: roles[0].replicas: '.spec..n' is not a path: a dot has no name after it...\n"},
		{ROLE("name: a, replicas: \"[']\", template: .spec.template"),
		 "4:29: roles[0].replicas: '[']' is not a path: write a key in brackets...\n"},
		{ROLE("replicas: '.spec.a[*].n', template: .spec.template"),
		 "4:20: roles[0].replicas: '.spec.a[*].n' is not a path: each part of a path...\n"},
		{ROLE("replicas: 1, if: {phase: A}, template: .spec.template"),
		 "4:35: roles[0].if.phase: must be a path, a label or an annotation; in states...\n"},
		{ROLE("replicas: 1, each: \".spec['a']\", template: label x"),
		 "4:29: roles[0].each: must be a path without brackets\n"
		 "4:53: roles[0].template: must be a path without brackets\n"},
		{HEAD "roles: frompods\n" STATES,
		 "4:8: roles: must be a list of maps, or from_pods\n"},
		{HEAD "roles: []\n" STATES, "4:8: roles: must have 1 to 64 items\n"},
		{"format: kxfs-kind/1\nname: foo\nobject: {api: v1, kind: Secret, plural: "
		 "secrets}\n" ROLES STATES,
		 "3:15: object.api: must be GROUP/VERSION, like batch/v1\n"},
		{STATE("if: {condition: Done}, is: succeeded, exact_message: a"),
		 "5:49: states[0].exact_message: no such key; the keys here are if, is, shown, "
		 "firm, exact\n"},
		{STATE("if: {condition: Bad}, is: failed"),
		 "1:1: states: no row has \"is: succeeded\", so no job could ever succeed...\n"},
		{STATE("if: {reason: A}, is: succeeded"),
		 "5:15: states[0].if: \"reason\" needs a \"condition\" in the same row\n"},
		{"format: kxfs-kind/2\nname: Foo\n",
		 "1:1: object is missing\n"
		 "1:1: roles is missing\n"
		 "1:1: states is missing\n"
		 "1:9: format: is kxfs-kind/2; this version of kxfs reads kxfs-kind/1\n"
		 "2:7: name: must be 1 to 20 lower-case letters and digits...\n"},
		{WHOLE "ctl: {suspend: .metadata.labels.x}\n",
		 "6:16: ctl.suspend: must be a path below .spec, without brackets\n"},
		{WHOLE "ctl: {suspend: .spec.a, terminate: {set: .spec.b, to: '}{'}}\n",
		 "6:55: ctl.terminate.to: must be a word or a number\n"},
		{WHOLE "ctl: {terminate: {set: .spec.b, to: 0}}\n",
		 "6:6: ctl: suspend is missing\n"},
		{WHOLE "ignore: [.status.a, .spec.b]\nuser_label: nobody\n"
		       "copy_without: [label a/b, name]\n",
		 "6:21: ignore[1]: must be .status.NAME, where NAME has at most 31 bytes\n"
		 "7:13: user_label: must be a path below .spec, without brackets\n"
		 "8:27: copy_without[1]: must be a path without brackets, or a label\n"},
		{WHOLE "parts: [{api: v1, kind: Node, plural: nodes}]\n",
		 "6:9: parts[0]: kind must be Pod: other objects of the core group...\n"},
		{WHOLE "parts: [{api: batch/v1, kind: Job, named: name}]\n",
		 "6:9: parts[0]: needs \"plural\", or both \"owner_uid\" and \"named\"\n"},
		{WHOLE "attempts: {failed: one, pods: .spec.n}\n",
		 "6:20: attempts.failed: must be a path\n"
		 "6:25: attempts.pods: no such key; the keys here are failed, restarted, allowed, "
		 "alone\n"},
		{WHOLE "attempts: {failed: .a, restarted: .b}\n",
		 "1:1: attempts: give \"failed\" or \"restarted\", not both\n"},
		{"- a\n", "1:1: must be a map\n"},
	};

	for (size_t i = 0; i < array_size(rows); i++)
		check(rows[i][0], rows[i][1]);
}

static void test_apis(void **state)
{
	static const char *const apis[] = {"batch", "batch/", "/v1", "a/b/c", "v2", "Batch/v1"};

	for (size_t i = 0; i < array_size(apis); i++) {
		cleanup_free char *text = text_print(
			"format: kxfs-kind/1\nname: foo\nobject: {api: %s, kind: Foo, plural: "
			"foos}\n" ROLES STATES "parts: [{api: %s, kind: Pod}]\n",
			apis[i], apis[i]);

		check(text, "3:15: object.api: must be GROUP/VERSION, like batch/v1\n"
			    "6:15: parts[0].api: must be GROUP/VERSION, like batch/v1, or v1\n");
	}
}

/* --- roles that are derived from pods --- */

#define PODS_HEAD                                                                                  \
	"format: kxfs-kind/1\nname: foo\nobject: {api: foo.io/v1, kind: Foo, plural: foos}\n"      \
	"states: [{if: {phase: Done}, is: succeeded}, {if: {phase: Going}, is: running}]\n"        \
	"phase: .status.phase\n"

static void foo_pod(struct world *w, const char *name, const char *role, const char *index,
		    int second, const char *phase, bool gone)
{
	world_pod(
		w,
		world_json("{'metadata':{'name':'%s','uid':'%s','creationTimestamp':"
			   "'2026-11-21T09:00:%02dZ','labels':{'role':'%s','index':'%s'},"
			   "'ownerReferences':[{'apiVersion':'foo.io/v1','kind':'Foo','name':'f',"
			   "'uid':'f-1','controller':true}]},'spec':{'containers':[{'name':'m'}]},"
			   "'status':{'phase':'%s'}}",
			   name, name, second, role, index, phase),
		gone);
}

static void foo_job(struct world *w, const char *spec)
{
	world_job(w,
		  world_json("{'metadata':{'name':'f','uid':'f-1','creationTimestamp':"
			     "'2026-11-21T09:00:00Z'},'spec':{%s},'status':{'phase':'Going'}}",
			     spec),
		  false);
}

static struct world foo_world(const char *text)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_kind *kind;

	assert_int_equal(spec_kind_file_read(text, strlen(text), NULL, &kind, &e), 0);
	return (struct world){.kind = kind};
}

static void foo_clear(struct world *w)
{
	world_clear(w);
	spec_kind_file_free(w->kind);
}

static void expect(struct world *w, const char *expected)
{
	char line[4096];

	describe_job(w->last, false, line);
	assert_string_equal(line, expected);
}

/*
 * A role has as many replicas as its pods show. A later role is added at the end, and none is
 * removed.
 */
static void test_from_pods(void **state)
{
	struct world w =
		foo_world(PODS_HEAD "roles: from_pods\n"
				    "pods: {role: label role, index: label index, trim: true}\n");

	foo_job(&w, "");
	expect(&w, "PENDING\n");
	foo_pod(&w, "b1", "f.B", "1", 2, "Running", false);
	foo_pod(&w, "x", "other", "0", 3, "Running", false);
	expect(&w, "RUNNING B-0=PENDING B-1=RUNNING other-0=RUNNING\n");
	foo_pod(&w, "a", "f.A", "0", 1, "Running", false);
	foo_pod(&w, "b2", "f.B", "2", 4, "Running", false);
	expect(&w, "RUNNING B-0=PENDING B-1=RUNNING B-2=RUNNING other-0=RUNNING A-0=RUNNING\n");
	assert_int_equal(w.last->roles[0].desired, 3);
	/* A workflow may still have another step to run. */
	foo_pod(&w, "b1", "f.B", "1", 2, "Succeeded", false);
	foo_pod(&w, "b2", "f.B", "2", 4, "Succeeded", false);
	foo_pod(&w, "a", "f.A", "0", 1, "Succeeded", false);
	foo_pod(&w, "x", "other", "0", 3, "Succeeded", false);
	w.n_pods -= 1;
	spec_pod_view_free(w.pods[w.n_pods]);
	foo_job(&w, "");
	assert_int_equal(w.last->n_replicas, 5);
	assert_int_equal(w.last->state, SPEC_RUNNING);
	foo_clear(&w);
}

/*
 * If the only pod has the name of the job, the role has the name of its container. Names keep their
 * case.
 */
static void test_from_pods_one(void **state)
{
	struct world w = foo_world(PODS_HEAD "roles: from_pods\n"
					     "pods: {role: label role, index: '0', trim: true}\n");

	foo_job(&w, "");
	foo_pod(&w, "p", "f", "", 1, "Running", false);
	expect(&w, "RUNNING m-0=RUNNING\n");
	/* An index that is far too large. */
	foo_clear(&w);
	w = foo_world(PODS_HEAD "roles: from_pods\npods: {role: label role, index: label index}\n");
	foo_job(&w, "");
	foo_pod(&w, "p", "a", "2147483647", 1, "Running", false);
	foo_pod(&w, "q", "b", "0", 2, "Running", false);
	assert_int_equal(w.last->n_replicas, 10000);
	foo_clear(&w);
}

/*
 * A role that grows has its configured replicas, and one more for each additional pod that runs at
 * the same time.
 */
static void test_grows(void **state)
{
	struct world w = foo_world(
		PODS_HEAD "roles:\n- {name: head, replicas: 1, template: .spec.head}\n"
			  "- {name: Work, replicas: .spec.n, template: .spec.work, grows: true}\n"
			  "- {name: tail, replicas: 1, template: .spec.tail}\n"
			  "pods: {role: label role}\n");

	foo_job(&w, "'n':1");
	expect(&w, "PENDING head-0=PENDING work-0=PENDING tail-0=PENDING\n");
	foo_pod(&w, "w1", "work", "", 1, "Running", false);
	foo_pod(&w, "t", "tail", "", 1, "Running", false);
	foo_pod(&w, "w2", "work", "", 2, "Running", false);
	foo_pod(&w, "h", "head", "", 3, "Running", false);
	foo_pod(&w, "h2", "head", "", 4, "Running", false);
	foo_pod(&w, "x", "other", "", 4, "Running", false);
	expect(&w, "RUNNING head-0=RUNNING work-0=RUNNING work-1=RUNNING tail-0=RUNNING\n");
	assert_string_equal(w.last->replicas[2].pod, "w2");
	/* The successor of a failed pod is not an additional replica. */
	foo_pod(&w, "w1", "work", "", 1, "Failed", true);
	foo_pod(&w, "w3", "work", "", 9, "Running", false);
	expect(&w,
	       "RUNNING head-0=RUNNING work-0=RUNNING/attempt 1 work-1=RUNNING tail-0=RUNNING\n");
	assert_string_equal(w.last->replicas[1].pod, "w3");
	foo_clear(&w);
}

/*
 * Statuses that no recording contains: of a TrainJob resumed before its JobSet exists, and of
 * objects that a Go client created, before their controller has acted.
 */
static void test_early_status(void **state)
{
	static const struct {
		const char *kind, *status, *want;
	} cases[] = {
		{"trainjob", "'conditions':[{'type':'Suspended','status':'False'}]", "PENDING"},
		{"workflow", "'startedAt':null,'finishedAt':null", "SUBMITTED"},
		{"sparkapplication", "'applicationState':{'state':''},'driverInfo':{}",
		 "SUBMITTED"},
		{"workflow", "'phase':'New'", "UNKNOWN"},
		{"pytorchjob", "'conditions':[{'type':'Suspended','status':'False'}]", "PENDING"},
		{"mpijob", "'conditions':[{'type':'Suspended','status':'False'}]", "PENDING"},
		{"jobset", "'conditions':[{'type':'Suspended','status':'False'}]", "PENDING"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct world w = {.kind = test_kind(cases[i].kind)};

		world_job(&w,
			  world_json("{'metadata':{'name':'j','uid':'u'},'spec':{"
				     "'replicatedJobs':[{'name':'a'}]},'status':{%s}}",
				     cases[i].status),
			  false);
		assert_string_equal(spec_state_name(w.last->state), cases[i].want);
		assert_false(w.job->owned);
		world_clear(&w);
	}
}

/*
 * "exact" lists reasons, and parts of messages that contain a blank. A message of a RayJob quotes
 * the program's log, so a reason in the message does not count.
 */
static void test_exact(void **state)
{
	static const struct {
		const char *kind, *status;
		bool exact;
	} cases[] = {
		{"rayjob",
		 "'jobDeploymentStatus':'Failed','reason':'DeadlineExceeded','message':'m'", true},
		{"rayjob",
		 "'jobDeploymentStatus':'Failed','reason':'AppFailed',"
		 "'message':'exit code 1, last logs: grpc: DeadlineExceeded'",
		 false},
		{"workflow", "'phase':'Failed','message':'Step Exceeded its deadline'", true},
		{"workflow", "'phase':'Failed','message':'deadline'", false},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		struct world w = {.kind = test_kind(cases[i].kind)};

		world_job(&w,
			  world_json("{'metadata':{'name':'j','uid':'u'},'spec':{},'status':{%s}}",
				     cases[i].status),
			  false);
		assert_int_equal(w.last->state, SPEC_FAILED);
		assert_int_equal(w.job->exact, cases[i].exact);
		assert_int_equal(w.job->vague, !cases[i].exact);
		world_clear(&w);
	}
}

/* --- mistakes that somebody could make in job.yaml --- */

static void note_phase(struct world *w, void *data)
{
	char line[4096];

	if (!w->last)
		return;
	describe_job(w->last, false, line);
	fprintf(data, "%s %s %s", w->last->phase, w->last->message, line);
}

/* Return what KIND shows of the recorded Jobs. */
static char *see_jobs(const struct spec_kind *kind)
{
	static const char *const scenarios[] = {
		"job_count_policy", "job_create",	  "job_deadline",
		"job_fail_policy",  "job_failed_index",	  "job_retry_job",
		"job_success",	    "job_suspend_resume", "job_terminated",
	};
	char *ret;
	size_t len;
	FILE *out = text_stream(&ret, &len);

	for (size_t i = 0; i < array_size(scenarios); i++) {
		struct world *w = mem_zero(sizeof(*w));

		w->kind = kind;
		world_play(w, scenarios[i], note_phase, out);
		world_clear(w);
		free(w);
	}
	text_stream_close(out);
	return ret;
}

static void check_job_mutant(void *data, const char *text, const char *what)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *seen = NULL;
	struct spec_kind *kind;

	if (spec_kind_file_read(text, strlen(text), &spec_job, &kind, &e) < 0)
		return;
	seen = see_jobs(kind);
	if (streq(seen, data))
		fail_msg("job.yaml: no recording shows the mistake in %s", what);
	spec_kind_file_free(kind);
}

static void test_mutants(void **state)
{
	cleanup_free char *right = see_jobs(test_kind("job"));

	each_mutant(shipped("job"), check_job_mutant, right);
}

/* The shipped files have no mistakes, and no two of them describe the same object. */
static void test_shipped(void **state)
{
	const struct spec_kinds *kinds = test_table_of_kinds();

	for (size_t i = 0; spec_shipped_kinds[i].name; i++) {
		check(spec_shipped_kinds[i].text, "");
		assert_non_null(test_kind(spec_shipped_kinds[i].name));
	}
	for (size_t i = 0; i < kinds->n; i++)
		for (size_t k = i + 1; k < kinds->n; k++)
			assert_false(streq(kinds->v[i]->api_version, kinds->v[k]->api_version) &&
				     streq(kinds->v[i]->kind, kinds->v[k]->kind));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mistakes), cmocka_unit_test(test_apis),
		cmocka_unit_test(test_shipped),	 cmocka_unit_test(test_from_pods),
		cmocka_unit_test(test_grows),	 cmocka_unit_test(test_from_pods_one),
		cmocka_unit_test(test_mutants),	 cmocka_unit_test(test_early_status),
		cmocka_unit_test(test_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
