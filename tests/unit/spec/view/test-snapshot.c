/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of jobs of a made-up kind with very simple objects: how states follow from phases and
 * pods, for any kind. tests/unit/spec/kinds tests the real kinds.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/view/reader.h"
#include "tests/unit/unit.h"

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

struct cluster {
	struct spec_job_view *job;
	const struct spec_pod_view *pods[4];
	size_t n;
	struct spec_job *last;
	bool left, pods_late, stale;
};

static void look(struct cluster *c)
{
	const struct spec_view_context ctx = {
		.reader = &reader,
		.backend = "made-up",
		.namespace = "ns",
		.now = 100,
		.history = c->left,
		.pods_late = c->pods_late,
		.stale_since = c->stale ? 50 : 0,
		.before = c->last,
	};
	struct spec_job *job = spec_view_job(c->job, c->pods, c->n, &ctx);

	spec_job_unref(c->last);
	c->last = job;
}

static void set_job(struct cluster *c, unsigned n, const char *phase)
{
	cleanup_free char *json = text_print(
		"{\"metadata\":{\"name\":\"j\",\"uid\":\"u\"},\"spec\":{\"n\":%u},\"status\":\"%s\"}",
		n, phase);

	spec_job_view_free(c->job);
	assert_int_equal(spec_job_view_parse(&reader, json, strlen(json), &c->job), 0);
	look(c);
}

/* Add a pod of TASK in PHASE, whose container has exited with CODE. -1: it has not exited. */
static void add_pod(struct cluster *c, const char *task, const char *phase, int code)
{
	cleanup_free char *state =
		code < 0
			? text_copy("{}")
			: text_print(
				  "{\"terminated\":{\"exitCode\":%d,\"reason\":\"%s\",\"startedAt\":"
				  "\"1970-01-01T00:00:01Z\",\"finishedAt\":"
				  "\"1970-01-01T00:00:02Z\"}}",
				  code, code ? "Error" : "Completed");
	cleanup_free char *json = text_print(
		"{\"metadata\":{\"name\":\"p-%s\",\"uid\":\"u-%s\",\"labels\":{\"task\":\"%s\"}},\"spec\":{"
		"\"containers\":[{\"name\":\"main\"}]},\"status\":{\"phase\":\"%s\","
		"\"containerStatuses\":[{\"name\":\"main\",\"state\":%s}]}}",
		task, task, task, phase, state);
	struct spec_pod_view *v;

	assert_int_equal(spec_pod_view_parse(
				 &(struct spec_pod_readers){
					 .v = &(const struct spec_reader *){&reader}, .n = 1},
				 json, strlen(json), &v),
			 0);
	c->pods[c->n++] = v;
	look(c);
}

static void clear(struct cluster *c)
{
	spec_job_view_free(c->job);
	for (size_t i = 0; i < c->n; i++)
		spec_pod_view_free((struct spec_pod_view *)(uintptr_t)c->pods[i]);
	spec_job_unref(c->last);
}

static void assert_is(const struct cluster *c, enum spec_state state, const char *reason,
		      const char *message)
{
	assert_string_equal(spec_state_name(c->last->state), spec_state_name(state));
	assert_string_equal(c->last->reason, reason);
	assert_string_equal(c->last->message, message);
}

static void test_order(void **state)
{
	struct cluster c = {0};

	set_job(&c, 2, "");
	assert_is(&c, SPEC_SUBMITTED, "", "");
	assert_string_equal(c.last->backend, "made-up");
	assert_int_equal(c.last->n_roles, 1);
	assert_string_equal(c.last->replicas[0].name, "worker-0");
	add_pod(&c, "T1", "Pending", -1);
	add_pod(&c, "unknown", "Failed", 1);
	assert_is(&c, SPEC_PENDING, "", "");
	assert_string_equal(c.last->replicas[0].pod, "");
	assert_string_equal(c.last->replicas[1].pod, "p-T1");
	assert_string_equal(c.last->replicas[1].logs ? "logs" : "", "");
	clear(&c);
}

/* The phase decides, unless it is unknown. A deleted job counts as cancelled. */
static void test_phases(void **state)
{
	struct cluster c = {0};

	set_job(&c, 1, "Up");
	assert_is(&c, SPEC_RUNNING, "", "");
	set_job(&c, 1, "New");
	assert_is(&c, SPEC_UNKNOWN, "UnknownPhase", "this version of kxfs does not know the phase");
	set_job(&c, 1, "Asleep");
	assert_is(&c, SPEC_CANCELLED, "Suspended", "");
	assert_true(c.last->suspended);
	set_job(&c, 1, "Up");
	c.left = true;
	look(&c);
	assert_is(&c, SPEC_CANCELLED, "Deleted", "it was removed from the cluster");
	assert_int_equal(c.last->finished, 100);
	clear(&c);
}

/* If the controller is late, the pods show that the job has finished. */
static void test_pods_decide(void **state)
{
	struct cluster c = {0};

	for (int decide = 0; decide < 2; decide++) {
		c = (struct cluster){0};
		reader.pods_decide = decide ? SPEC_PODS_DECIDE_END : SPEC_PODS_DECIDE_SUCCESS;
		set_job(&c, 2, "Up");
		add_pod(&c, "T0", "Succeeded", 0);
		add_pod(&c, "T1", "Failed", 7);
		assert_is(&c, decide ? SPEC_FAILED : SPEC_RUNNING, "Error",
			  "worker-1: exit code 7");
		assert_int_equal(c.last->finished, decide ? 2 * INT64_C(1000000000) : 0);
		clear(&c);
	}
	reader.pods_decide = SPEC_PODS_DECIDE_SUCCESS;
}

/* A replica keeps its last known state when its pod is forgotten. */
static void test_forgotten_pod(void **state)
{
	struct cluster c = {0};

	set_job(&c, 1, "Up");
	add_pod(&c, "T0", "Failed", 7);
	set_job(&c, 1, "Broken");
	assert_is(&c, SPEC_FAILED, "Error", "worker-0: exit code 7");
	spec_pod_view_free((struct spec_pod_view *)(uintptr_t)c.pods[0]);
	c.n = 0;
	look(&c);
	assert_is(&c, SPEC_FAILED, "Error", "worker-0: exit code 7");
	assert_int_equal(c.last->replicas[0].exit_code, 7);
	assert_int_equal(c.last->replicas[0].n_logs, 1);
	assert_string_equal(c.last->replicas[0].logs[0].key, "u-T0.main.0");
	clear(&c);
}

/*
 * A job ends before kxfs has seen any of its pods. Its replica has not finished while a pod may
 * still arrive.
 */
static void test_late_pods(void **state)
{
	struct cluster c = {.pods_late = true};

	set_job(&c, 1, "Up");
	set_job(&c, 1, "Broken");
	for (int i = 0; i < 2; i++) {
		assert_is(&c, SPEC_FAILED, "Broken", "");
		assert_int_equal(c.last->replicas[0].finished, 0);
		assert_false(spec_job_is_over(c.last));
		look(&c);
	}
	/* No pod arrived. Once the replica was shown as finished, that does not change. */
	for (int i = 0; i < 2; i++) {
		c.pods_late = i > 0;
		look(&c);
		assert_int_equal(c.last->replicas[0].finished, 100);
		assert_true(spec_job_is_over(c.last));
	}
	clear(&c);
	/* A pod arrives. */
	c = (struct cluster){.pods_late = true};
	set_job(&c, 1, "Broken");
	assert_false(spec_job_is_over(c.last));
	add_pod(&c, "T0", "Failed", 7);
	assert_is(&c, SPEC_FAILED, "Error", "worker-0: exit code 7");
	assert_true(spec_job_is_over(c.last));
	clear(&c);
}

/*
 * The reason for a job's failure may arrive later than the failure. Whoever waits for the job's end
 * waits for the reason too, for a limited time.
 */
static void test_unexplained(void **state)
{
	struct cluster c = {0};

	/*
	 * All cases: whether the job's end arrives first, whether pods may be late, and whether the
	 * view is stale.
	 */
	for (int i = 0; i < 8; i++) {
		c = (struct cluster){.pods_late = i & 2, .stale = i & 4};
		set_job(&c, 2, "Up");
		add_pod(&c, "T0", "Running", -1);
		assert_false(c.last->unexplained);
		if (i & 1)
			add_pod(&c, "T1", "Failed", 7);
		set_job(&c, 2, "Broken");
		assert_int_equal(c.last->unexplained, i == 2);
		clear(&c);
	}
	/* The reason arrives, or it is certain that none will. */
	for (int i = 0; i < 2; i++) {
		c = (struct cluster){.pods_late = true};
		set_job(&c, 1, "Up");
		set_job(&c, 1, "Broken");
		assert_true(c.last->unexplained);
		c.pods_late = i > 0;
		if (i)
			add_pod(&c, "T0", "Failed", 7);
		look(&c);
		assert_false(c.last->unexplained);
		clear(&c);
	}
	/* A job that has not failed needs no reason. */
	c = (struct cluster){.pods_late = true};
	set_job(&c, 1, "Asleep");
	assert_false(c.last->unexplained);
	clear(&c);
}

static void test_refused(void **state)
{
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
		const char *json = jsons[i];

		assert_int_equal(spec_job_view_parse(&reader, json, strlen(json), &job), -EINVAL);
		assert_int_equal(spec_pod_view_parse(
					 &(struct spec_pod_readers){
						 .v = &(const struct spec_reader *){&reader},
						 .n = 1},
					 json, strlen(json), &pod),
				 -EINVAL);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_order),	      cmocka_unit_test(test_phases),
		cmocka_unit_test(test_pods_decide),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_forgotten_pod), cmocka_unit_test(test_late_pods),
		cmocka_unit_test(test_unexplained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
