/* SPDX-License-Identifier: MIT */
/*
 * Kind files: each mistake is reported where it is. Also: roles that are derived from pods, and
 * what a file defines about ctl and copies.
 */
#include "spec/kindfile/kindfile.h"

#include "spec/kinds/kinds.h"
#include "spec/view/control.h"
#include "tests/unit/spec/kindfile/mutants.h"
#include "tests/unit/spec/kinds/cluster-world.h"
#include "tests/unit/table.h"

/* --- mistakes --- */

#define HEAD   "format: kxfs-kind/1\nname: foo\nobject: {api: foo.io/v1, kind: Foo, plural: foos}\n"
#define ROLES  "roles: [{name: a, replicas: .spec.n, template: .spec.template}]\n"
#define STATES "states: [{if: {condition: Done}, is: succeeded}]\n"

static void check(const char *text, const char *expected)
{
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *errors = NULL;
	struct spec_kind *kind;
	int err;

	err = spec_kind_file_read(text, strlen(text), NULL, &kind, &e);
	assert_int_equal(err, e.err);
	errors = spec_errors_text(&e, "foo.yaml");
	assert_string_equal(errors, expected);
	assert_int_equal(kind == NULL, *expected != '\0');
	spec_kind_file_free(kind);
}

static void test_mistakes(void **state)
{
	static const char *const apis[] = {"batch", "batch/", "/v1", "a/b/c", "v2", "Batch/v1"};

	check(HEAD ROLES STATES, "");
	check(HEAD ROLES "states:\n- {if: {condition: Done}, is: finished}\n",
	      "foo.yaml:6:31: states[0].is: \"finished\" is not a state; use one of pending, running, "
	      "between, ending, suspending, suspended, paused, succeeded, failed, cancelled\n");
	check(HEAD "roles: [{name: a, repicas: 1, template: .spec.template}]\n" STATES,
	      "foo.yaml:4:9: roles[0]: replicas is missing\n"
	      "foo.yaml:4:19: roles[0].repicas: no such key; did you mean replicas?\n");
	check(HEAD "roles: [{replicas: 1, default: 1, template: .spec.template}]\n" STATES,
	      "foo.yaml:4:23: roles[0].default: no such key; the keys here are each, if, name, replicas, times, copies, template, grows\n");
	check(HEAD "roles: [{name: a, replicas: .spec..n, template: .spec.template}]\n" STATES,
	      "foo.yaml:4:29: roles[0].replicas: '.spec..n' is not a path: a dot has no name after "
	      "it. A name has only letters, digits, - and _; write any other key as ['KEY']\n");
	check(HEAD "roles: [{name: a, replicas: \"[']\", template: .spec.template}]\n" STATES,
	      "foo.yaml:4:29: roles[0].replicas: '[']' is not a path: write a key in brackets as "
	      "['KEY']\n");
	check("format: kxfs-kind/1\nname: foo\nobject: {api: v1, kind: Secret, plural: secrets}\n" ROLES
		      STATES,
	      "foo.yaml:3:15: object.api: must be GROUP/VERSION, like batch/v1\n");
	for (size_t i = 0; i < array_size(apis); i++) {
		cleanup_free char *text = text_print(
			"format: kxfs-kind/1\nname: foo\nobject: {api: %s, kind: Foo, plural: "
			"foos}\n" ROLES STATES "parts: [{api: %s, kind: Pod}]\n",
			apis[i], apis[i]);

		check(text,
		      "foo.yaml:3:15: object.api: must be GROUP/VERSION, like batch/v1\n"
		      "foo.yaml:6:15: parts[0].api: must be GROUP/VERSION, like batch/v1, or v1\n");
	}
	check(HEAD ROLES "states: [{if: {condition: Done}, is: succeeded, exact_message: a}]\n",
	      "foo.yaml:5:49: states[0].exact_message: no such key; the keys here are if, is, shown, firm, exact\n");
	check(HEAD ROLES "states: [{if: {condition: Bad}, is: failed}]\n",
	      "foo.yaml:1:1: states: no row has \"is: succeeded\", so no job could ever succeed; "
	      "add such a row\n");
	check("format: kxfs-kind/2\nname: Foo\n",
	      "foo.yaml:1:1: object is missing\n"
	      "foo.yaml:1:1: roles is missing\n"
	      "foo.yaml:1:1: states is missing\n"
	      "foo.yaml:1:9: format: is kxfs-kind/2; this version of kxfs reads kxfs-kind/1\n"
	      "foo.yaml:2:7: name: must be 1 to 20 lower-case letters and digits, and begin "
	      "with a letter\n");
	check(HEAD ROLES STATES "ctl: {suspend: .metadata.labels.x}\n",
	      "foo.yaml:6:16: ctl.suspend: must be a path below .spec, without brackets\n");
	check(HEAD ROLES STATES "ctl: {suspend: .spec.a, terminate: {set: .spec.b, to: '}{'}}\n",
	      "foo.yaml:6:55: ctl.terminate.to: must be a word or a number\n");
	check(HEAD ROLES STATES "ctl: {terminate: {set: .spec.b, to: 0}}\n",
	      "foo.yaml:6:6: ctl: suspend is missing\n");
	check(HEAD ROLES STATES "ignore: [.status.a, .spec.b]\nuser_label: nobody\n"
				"copy_without: [label a/b, name]\n",
	      "foo.yaml:6:21: ignore[1]: must be .status.NAME, where NAME has at most 31 bytes\n"
	      "foo.yaml:7:13: user_label: must be a path below .spec, without brackets\n"
	      "foo.yaml:8:27: copy_without[1]: must be a path without brackets, or a label\n");
	check(HEAD "roles: [{replicas: '.spec.a[*].n', template: .spec.template}]\n" STATES,
	      "foo.yaml:4:20: roles[0].replicas: '.spec.a[*].n' is not a path: each part of a path must begin with "
	      "a dot or ['\n");
	check(HEAD "roles: [{replicas: 1, if: {phase: A}, template: .spec.template}]\n" STATES,
	      "foo.yaml:4:35: roles[0].if.phase: must be a path, a label or an annotation; in "
	      "states also condition, phase or reason\n");
	check(HEAD ROLES "states: [{if: {reason: A}, is: succeeded}]\n",
	      "foo.yaml:5:15: states[0].if: \"reason\" needs a \"condition\" in the same row\n");
	check(HEAD ROLES STATES "parts: [{api: v1, kind: Node, plural: nodes}]\n",
	      "foo.yaml:6:9: parts[0]: kind must be Pod: other objects of the core group can't be "
	      "parts\n");
	check(HEAD ROLES STATES "parts: [{api: batch/v1, kind: Job, named: name}]\n",
	      "foo.yaml:6:9: parts[0]: needs \"plural\", or both \"owner_uid\" and \"named\"\n");
	check(HEAD "roles: frompods\n" STATES,
	      "foo.yaml:4:8: roles: must be a list of maps, or from_pods\n");
	check(HEAD "roles: []\n" STATES, "foo.yaml:4:8: roles: must have 1 to 64 items\n");
	check(HEAD ROLES STATES "attempts: {failed: one, pods: .spec.n}\n",
	      "foo.yaml:6:20: attempts.failed: must be a path\n"
	      "foo.yaml:6:25: attempts.pods: no such key; the keys here are failed, restarted, allowed, alone\n");
	check(HEAD "roles: [{replicas: 1, each: \".spec['a']\", template: label x}]\n" STATES,
	      "foo.yaml:4:29: roles[0].each: must be a path without brackets\n"
	      "foo.yaml:4:53: roles[0].template: must be a path without brackets\n");
	check(HEAD ROLES STATES "attempts: {failed: .a, restarted: .b}\n",
	      "foo.yaml:1:1: attempts: give \"failed\" or \"restarted\", not both\n");
	check("- a\n", "foo.yaml:1:1: must be a map\n");
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

/* --- ctl --- */

#define FLOW(spec)                                                                                 \
	"{'metadata':{'name':'f','uid':'f-1','resourceVersion':'1'},'spec':{" spec                 \
	"},'status':{'phase':'Running'}}"

/*
 * ctl terminates a Workflow with a field of its spec. A suspended Workflow may continue, so it is
 * not finished.
 */
static void test_workflow_ctl(void **state)
{
	struct world w = {.kind = test_kind("workflow")};
	struct spec_control_job about = {.kueue = &w.kueue};
	struct spec_control_asked asked = {.job = &about,
					   .namespace = "ns",
					   .kind = w.kind,
					   .action = SPEC_TERMINATE};
	struct spec_control_request rq;

	world_job(&w, world_json(FLOW("")), false);
	about.view = w.job;
	assert_int_equal(w.last->actions, 1u << SPEC_SUSPEND | 1u << SPEC_TERMINATE);
	w.kind->control->request(&asked, &rq);
	assert_string_equal(rq.path, "/apis/argoproj.io/v1alpha1/namespaces/ns/workflows/"
				     "f?fieldManager=kxfs");
	assert_string_equal(rq.body, "{\"metadata\":{\"uid\":\"f-1\",\"resourceVersion\":\"1\"},"
				     "\"spec\":{\"shutdown\":\"Terminate\"}}");
	spec_control_request_clear(&rq);
	world_job(&w, world_json(FLOW("'suspend':true")), false);
	assert_int_equal(w.last->actions, 1u << SPEC_RESUME);
	assert_int_equal(w.last->state, SPEC_PENDING);
	assert_string_equal(w.last->reason, "Paused");
	assert_false(w.last->suspended);
	world_job(&w, world_json(FLOW("'shutdown':'Terminate'")), false);
	assert_string_equal(w.last->phase, "Terminating");
	assert_int_equal(w.last->actions, 0);
	world_clear(&w);
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

static int see_object(void *data, const char *json, size_t len, int wrong)
{
	assert_string_equal(json, data);
	return 0;
}

/* The tree of a Workflow's nodes is dropped while it is received. */
static void test_ignored(void **state)
{
	static const char event[] =
		"{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"f\",\"managedFields\":[1]},"
		"\"status\":{\"nodes\":{\"a\":{\"b\":1}},\"phase\":\"Running\"}}}";
	char kept[] = "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"f\"},"
		      "\"status\":{\"phase\":\"Running\"}}}";
	struct spec_split *s =
		spec_split_new(SPEC_SPLIT_WATCH, test_kind("workflow")->ignored, see_object, kept);

	assert_int_equal(spec_split_feed(s, event, strlen(event)), 0);
	spec_split_free(s);
	assert_null(test_kind("pytorchjob")->ignored);
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
		cmocka_unit_test(test_mistakes),      cmocka_unit_test(test_shipped),
		cmocka_unit_test(test_from_pods),     cmocka_unit_test(test_grows),
		cmocka_unit_test(test_from_pods_one), cmocka_unit_test(test_ignored),
		cmocka_unit_test(test_mutants),	      cmocka_unit_test(test_workflow_ctl),
		cmocka_unit_test(test_early_status),  cmocka_unit_test(test_exact),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
