/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of jobs of a made-up kind with very simple objects: how states follow from phases and
 * pods, for any kind, and how usage follows from samples. tests/unit/spec/kinds tests the real
 * kinds.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/view/reader.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)

/*
 * The parser of that kind. A job has "n" tasks of one pod each, T0, T1 ... Its phase is its status.
 */
static size_t read_job(const struct spec_reader *self, const struct spec_value *object,
		       struct spec_job_view *v, struct spec_task_source **ret_tasks)
{
	const struct spec_value *spec = spec_read_map(object, "spec");
	size_t n = (size_t)spec_read_int(spec, "n", 0);

	*ret_tasks = new0_n(struct spec_task_source, n);
	for (size_t i = 0; i < n; i++) {
		struct spec_task_source *task = &(*ret_tasks)[i];

		snprintf(task->key, sizeof(task->key), "T%zu", i);
		task->name = task->key;
		task->role = "worker";
		task->replica = (unsigned)i;
		task->replicas = task->minimum = 1;
	}
	v->restarts = spec_read_bool(spec, "restarts");
	return n;
}

static void read_status(const struct spec_reader *self, const struct spec_value *object,
			struct spec_job_view *v)
{
	spec_set(&v->phase, spec_read_text(object, "status"));
}

static void read_pod(const struct spec_reader *self, const struct spec_value *object,
		     struct spec_pod_view *v)
{
	spec_set(&v->task, spec_read_text(spec_view_labels(object), "task"));
	spec_set(&v->main, spec_pod_choose_main(object, ""));
}

static const struct spec_phase phases[] = {
	{.name = "Up", .state = SPEC_RUNNING},
	{.name = "Asleep", .state = SPEC_CANCELLED, .ending = true, .suspended = true},
	{.name = "Broken", .state = SPEC_FAILED, .ending = true},
	{0},
};

static struct spec_reader reader = {
	.job = read_job,
	.status = read_status,
	.pod = read_pod,
	.phases = phases,
};

static struct cluster {
	struct spec_job_view *job;
	const struct spec_pod_view *pods[4];
	size_t n;
	struct spec_job *last;
	bool left, pods_late, stale;
} cluster;

static void look(void)
{
	const struct spec_view_context ctx = {
		.reader = &reader,
		.backend = "made-up",
		.namespace = "ns",
		.now = 100,
		.history = cluster.left,
		.pods_late = cluster.pods_late,
		.stale_since = cluster.stale ? 50 : 0,
		.before = cluster.last,
	};
	struct spec_job *job = spec_view_job(cluster.job, cluster.pods, cluster.n, &ctx);

	spec_job_unref(cluster.last);
	cluster.last = spec_job_pack(job);
}

static struct spec_pod_view *pod_of(char *text)
{
	static const struct spec_reader *const readers[] = {&reader};
	const struct spec_pod_readers all = {.v = readers, .n = 1};
	cleanup_free char *json = unit_json(text);
	struct spec_pod_view *v;

	assert_int_equal(spec_pod_view_parse(&all, json, strlen(json), &v), 0);
	return v;
}

static void set_job(unsigned n, const char *phase)
{
	cleanup_free char *json = unit_json(
		text_print("{'metadata':{'name':'j','uid':'u'},'spec':{'n':%u},'status':'%s'}", n,
			   phase));

	spec_job_view_free(cluster.job);
	assert_int_equal(spec_job_view_parse(&reader, json, strlen(json), &cluster.job), 0);
	look();
}

/* Add a pod of TASK in PHASE, whose container has exited with CODE. -1: it has not exited. */
static void add_pod(const char *task, const char *phase, int code)
{
	cleanup_free char *state =
		text_print(code < 0
				   ? "{}"
				   : "{'terminated':{'exitCode':%d,'reason':'%s','startedAt':"
				     "'1970-01-01T00:00:01Z','finishedAt':'1970-01-01T00:00:02Z'}}",
			   code, code ? "Error" : "Completed");

	cluster.pods[cluster.n++] = pod_of(text_print(
		"{'metadata':{'name':'p-%s','uid':'u-%s','labels':{'task':'%s'}},'spec':{"
		"'containers':[{'name':'main'}]},'status':{'phase':'%s',"
		"'containerStatuses':[{'name':'main','state':%s}]}}",
		task, task, task, phase, state));
	look();
}

static int end(void **state)
{
	spec_job_view_free(cluster.job);
	for (size_t i = 0; i < cluster.n; i++)
		spec_pod_view_free((struct spec_pod_view *)(uintptr_t)cluster.pods[i]);
	spec_job_unref(cluster.last);
	cluster = (struct cluster){0};
	return 0;
}

/* Begin with an empty cluster. */
static void start(void)
{
	end(NULL);
}

static void assert_is(enum spec_state state, const char *reason, const char *message)
{
	assert_string_equal(spec_state_name(cluster.last->state), spec_state_name(state));
	assert_string_equal(cluster.last->reason, reason);
	assert_string_equal(cluster.last->message, message);
}

static void test_order(void **state)
{
	start();
	set_job(2, "");
	assert_is(SPEC_SUBMITTED, "", "");
	assert_string_equal(cluster.last->backend, "made-up");
	assert_int_equal(cluster.last->n_roles, 1);
	assert_string_equal(cluster.last->replicas[0].name, "worker-0");
	add_pod("T1", "Pending", -1);
	add_pod("unknown", "Failed", 1);
	assert_is(SPEC_PENDING, "", "");
	assert_string_equal(cluster.last->replicas[0].pod, "");
	assert_string_equal(cluster.last->replicas[1].pod, "p-T1");
	assert_int_equal(cluster.last->replicas[1].n_logs, 0);
}

/* The phase decides, unless it is unknown. A deleted job counts as cancelled. */
static void test_phases(void **state)
{
	start();
	set_job(1, "Up");
	assert_is(SPEC_RUNNING, "", "");
	set_job(1, "New");
	assert_is(SPEC_UNKNOWN, "UnknownPhase", "this version of kxfs does not know the phase");
	set_job(1, "Asleep");
	assert_is(SPEC_CANCELLED, "Suspended", "");
	assert_true(cluster.last->suspended);
	set_job(1, "Up");
	cluster.left = true;
	look();
	assert_is(SPEC_CANCELLED, "Deleted", "it was removed from the cluster");
	assert_int_equal(cluster.last->finished, 100);
}

/* If the controller is late, the pods show that the job has finished. */
static void test_pods_decide(void **state)
{
	for (int decide = 0; decide < 2; decide++) {
		start();
		reader.pods_decide = decide ? SPEC_PODS_DECIDE_END : SPEC_PODS_DECIDE_SUCCESS;
		set_job(2, "Up");
		add_pod("T0", "Succeeded", 0);
		add_pod("T1", "Failed", 7);
		assert_is(decide ? SPEC_FAILED : SPEC_RUNNING, "Error", "worker-1: exit code 7");
		assert_int_equal(cluster.last->finished, decide ? 2 * INT64_C(1000000000) : 0);
	}
	reader.pods_decide = SPEC_PODS_DECIDE_SUCCESS;
}

/* Without an earlier snapshot, a job changed when the newest of its objects did. */
static void test_changed(void **state)
{
	start();
	set_job(1, "Up");
	add_pod("T0", "Failed", 7);
	assert_int_equal(cluster.last->changed, 100);
	spec_job_unref(take_ptr(cluster.last));
	look();
	assert_int_equal(cluster.last->changed, 2 * SECOND);
}

/* A replica keeps its last known state when its pod is forgotten. */
static void test_forgotten_pod(void **state)
{
	start();
	set_job(1, "Up");
	add_pod("T0", "Failed", 7);
	set_job(1, "Broken");
	assert_is(SPEC_FAILED, "Error", "worker-0: exit code 7");
	spec_pod_view_free((struct spec_pod_view *)(uintptr_t)cluster.pods[0]);
	cluster.n = 0;
	look();
	assert_is(SPEC_FAILED, "Error", "worker-0: exit code 7");
	assert_int_equal(cluster.last->replicas[0].exit_code, 7);
	assert_int_equal(cluster.last->replicas[0].n_logs, 1);
	assert_string_equal(cluster.last->replicas[0].logs[0].key, "u-T0.main.0");
}

/*
 * A job ends before kxfs has seen any of its pods. Its replica has not finished while a pod may
 * still arrive.
 */
static void test_late_pods(void **state)
{
	for (int arrives = 0; arrives < 2; arrives++) {
		start();
		cluster.pods_late = true;
		set_job(1, "Up");
		set_job(1, "Broken");
		for (int i = 0; i < 2; i++) {
			assert_is(SPEC_FAILED, "Broken", "");
			assert_int_equal(cluster.last->replicas[0].finished, 0);
			assert_false(spec_job_is_over(cluster.last));
			look();
		}
		if (arrives) {
			add_pod("T0", "Failed", 7);
			assert_is(SPEC_FAILED, "Error", "worker-0: exit code 7");
			assert_true(spec_job_is_over(cluster.last));
		}
		/* Once the replica was shown as finished, that does not change. */
		for (int i = 0; i < 2 && !arrives; i++) {
			cluster.pods_late = i > 0;
			look();
			assert_int_equal(cluster.last->replicas[0].finished, 100);
			assert_true(spec_job_is_over(cluster.last));
		}
	}
}

/*
 * The reason for a job's failure may arrive later than the failure. Whoever waits for the job's end
 * waits for the reason too, for a limited time.
 */
static void test_unexplained(void **state)
{
	/*
	 * All cases: whether the job's end arrives first, whether pods may be late, and whether the
	 * view is stale.
	 */
	for (int i = 0; i < 8; i++) {
		start();
		cluster.pods_late = i & 2;
		cluster.stale = i & 4;
		set_job(2, "Up");
		add_pod("T0", "Running", -1);
		assert_false(cluster.last->unexplained);
		if (i & 1)
			add_pod("T1", "Failed", 7);
		set_job(2, "Broken");
		assert_int_equal(cluster.last->unexplained, i == 2);
	}
	/* The reason arrives, or it is certain that none will. */
	for (int i = 0; i < 2; i++) {
		start();
		cluster.pods_late = true;
		set_job(1, "Up");
		set_job(1, "Broken");
		assert_true(cluster.last->unexplained);
		cluster.pods_late = i > 0;
		if (i)
			add_pod("T0", "Failed", 7);
		look();
		assert_false(cluster.last->unexplained);
	}
	/* A job that has not failed needs no reason. */
	start();
	cluster.pods_late = true;
	set_job(1, "Asleep");
	assert_false(cluster.last->unexplained);
}

static void test_refused(void **state)
{
	static const struct spec_reader *const readers[] = {&reader};
	const struct spec_pod_readers all = {.v = readers, .n = 1};
	static const char *const jsons[] = {
		"[]",
		"{}",
		"{\"metadata\":{\"name\":\"../j\",\"uid\":\"u\"}}",
		"{\"metadata\":{\"name\":\"j\",\"uid\":\"u/1\"}}",
		"{\"metadata\":{\"name\":\"j\",\"uid\":\"u\"}",
	};
	struct spec_job_view *job;
	struct spec_pod_view *pod;

	for (size_t i = 0; i < array_size(jsons); i++) {
		size_t len = strlen(jsons[i]);

		assert_int_equal(spec_job_view_parse(&reader, jsons[i], len, &job), -EINVAL);
		assert_int_equal(spec_pod_view_parse(&all, jsons[i], len, &pod), -EINVAL);
	}
}

/* --- usage: what is computed from the samples of metrics.k8s.io --- */

/* Show the pod p of task T0 with this UID, and its container in this STATE, with ' in place of ". */
static void set_pod(const char *uid, const char *state)
{
	struct spec_pod_view *v = pod_of(
		text_print("{'metadata':{'name':'p','uid':'%s','labels':{'task':'T0'}},'spec':{"
			   "'containers':[{'name':'main'}]},'status':{'phase':'Running',"
			   "'containerStatuses':[{'name':'main','state':%s}]}}",
			   uid, state));

	if (cluster.n > 0) {
		if (streq(uid, cluster.pods[0]->meta.uid))
			spec_pod_view_inherit(v, cluster.pods[0]);
		spec_pod_view_free((struct spec_pod_view *)(uintptr_t)cluster.pods[0]);
	}
	cluster.pods[0] = v;
	cluster.n = 1;
	look();
}

/* Let the container of the pod UID run since second START of 1970. */
static void run(const char *uid, int start)
{
	cleanup_free char *state =
		text_print("{'running':{'startedAt':'1970-01-01T00:%02d:%02dZ'}}", start / 60,
			   start % 60);

	set_pod(uid, state);
}

static struct spec_pod_view *find(void *data, const char *name)
{
	return streq(name, "p") ? (struct spec_pod_view *)(uintptr_t)cluster.pods[0] : NULL;
}

/* Add a sample at second AT. Return whether it was new. */
static bool sample(int at, const char *cpu, const char *memory)
{
	cleanup_free char *json = unit_json(
		text_print("{'metadata':{'name':'p'},'timestamp':'1970-01-01T00:%02d:%02dZ',"
			   "'window':'15s','containers':[{'name':'proxy','usage':{'cpu':'9',"
			   "'memory':'9Gi'}},{'name':'main','usage':{'cpu':%s,'memory':%s}}]}",
			   at / 60, at % 60, cpu, memory));
	const struct spec_pod_view *v = spec_pod_view_sample(json, strlen(json), find, NULL);

	look();
	return v;
}

static const struct spec_usage *used(void)
{
	return cluster.last->replicas[0].usage;
}

static void expect(int64_t cpu_us, int64_t cpu_now, int64_t memory_now, int64_t memory_peak,
		   int64_t samples)
{
	const struct spec_usage *u = used();

	assert_non_null(u);
	assert_int_equal(u->source, SPEC_USAGE_METRICS);
	assert_int_equal(u->cpu_us, cpu_us);
	assert_int_equal(u->cpu_now, cpu_now);
	assert_int_equal(u->memory_now, memory_now);
	assert_int_equal(u->memory_peak, memory_peak);
	assert_int_equal(u->samples, samples);
}

static void test_sum(void **state)
{
	start();
	set_job(1, "Up");
	run("u1", 100);
	assert_null(used());
	assert_true(sample(110, "'500000001n'", "'100Ki'"));
	expect(5000010, 500, 102400, 102400, 1);
	assert_int_equal(used()->first, 110 * SECOND);
	/* The same sample again, or an older one, is not new. */
	assert_false(sample(110, "'9'", "'9Gi'"));
	assert_false(sample(105, "'9'", "'9Gi'"));
	assert_true(sample(125, "'1'", "'300Ki'"));
	expect(20000010, 1000, 307200, 307200, 2);
	/* One sample is missing. The next one counts for both. */
	assert_true(sample(155, "'2'", "'200Ki'"));
	expect(80000010, 2000, 204800, 307200, 3);
	assert_int_equal(used()->last, 155 * SECOND);
	/* Other changes of the pod do not affect its usage. When it ends, its usage is kept. */
	run("u1", 100);
	expect(80000010, 2000, 204800, 307200, 3);
	set_pod("u1", "{'terminated':{'exitCode':137,'reason':'OOMKilled','startedAt':"
		      "'1970-01-01T00:01:40Z','finishedAt':'1970-01-01T00:02:40Z'}}");
	expect(80000010, 0, 0, 307200, 3);
}

/*
 * Usage while there were no samples is unknown, and so is the total. Values that are not numbers,
 * or too large, are unknown too.
 */
static void test_unknown(void **state)
{
	static const struct {
		int at;
		const char *cpu, *memory;
		int64_t cpu_us, cpu_now, memory_now, memory_peak;
	} rows[][2] = {
		{{146, "'1'", "'1Ki'", -1, 1000, 1024, 1024},
		 {160, "'2'", "'2Ki'", -1, 2000, 2048, 2048}},
		{{145, "'1'", "'3Ki'", 45000000, 1000, 3072, 3072},
		 {191, "'1'", "'1Ki'", -1, 1000, 1024, 3072}},
		{{110, "'one'", "'-5'", -1, -1, -1, -1},
		 {120, "'999999999'", "'7'", -1, 999999999000, 7, 7}},
		{{110, "{}", "'1e18'", -1, -1, -1, -1}, {120, "'1'", "'7'", -1, 1000, 7, 7}},
		{{145, "'999999999'", "'7'", -1, 999999999000, 7, 7},
		 {146, "'1'", "'7'", -1, 1000, 7, 7}},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		start();
		set_job(1, "Up");
		run("u1", 100);
		for (int k = 0; k < 2; k++) {
			sample(rows[i][k].at, rows[i][k].cpu, rows[i][k].memory);
			expect(rows[i][k].cpu_us, rows[i][k].cpu_now, rows[i][k].memory_now,
			       rows[i][k].memory_peak, k + 1);
		}
	}
}

/*
 * A sample of an earlier pod with the same name, or of an earlier run of its container, does not
 * count.
 */
static void test_runs(void **state)
{
	start();
	set_job(1, "Up");
	run("u1", 100);
	sample(110, "'1'", "'1Mi'");
	run("u2", 120);
	assert_null(used());
	sample(119, "'1'", "'1Mi'");
	sample(120, "'1'", "'1Mi'");
	assert_null(used());
	sample(130, "'500m'", "'1Ki'");
	expect(5000000, 500, 1024, 1024, 1);
	/* While the container waits for its restart, the usage of its last run is shown. */
	set_pod("u2", "{'waiting':{'reason':'CrashLoopBackOff'}}");
	expect(5000000, 0, 0, 1024, 1);
	run("u2", 140);
	assert_null(used());
	sample(150, "'1'", "'2Ki'");
	expect(10000000, 1000, 2048, 2048, 1);
}

static void test_not_metrics(void **state)
{
#define POD_P "{'metadata':{'name':'p'}"
#define AT    ",'timestamp':'1970-01-01T00:03:00Z'"
	static const char *const texts[] = {
		"",
		"[]",
		"{}",
		POD_P "}",
		POD_P AT "}",
		POD_P AT ",'containers':[{}]}",
		POD_P ",'timestamp':7,'containers':[{'name':'main'}]}",
		"{'metadata':{'name':'q'}" AT
		",'containers':[{'name':'main','usage':{'cpu':'1','memory':'1'}}]}",
	};
	start();
	set_job(1, "Up");
	run("u1", 100);
	for (size_t i = 0; i < array_size(texts); i++) {
		cleanup_free char *json = unit_json(text_copy(texts[i]));

		assert_null(spec_pod_view_sample(json, strlen(json), find, NULL));
	}
	look();
	assert_null(used());
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	    cmocka_unit_test(test_phases),
		cmocka_unit_test(test_pods_decide), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_changed),	    cmocka_unit_test(test_forgotten_pod),
		cmocka_unit_test(test_late_pods),   cmocka_unit_test(test_unexplained),
		cmocka_unit_test(test_sum),	    cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_runs),	    cmocka_unit_test(test_not_metrics),
	};

	return cmocka_run_group_tests(tests, NULL, end);
}
