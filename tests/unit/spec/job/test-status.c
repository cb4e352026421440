/* SPDX-License-Identifier: MIT */
/*
 * The texts of state, status, status.json, ctl and changes, and those of a replica, as users read
 * them.
 */
#include <limits.h>
#include <json-c/json.h>

#include "spec/base/mem.h"
#include "spec/base/time.h"
#include "spec/job/status.h"
#include "spec/yaml/yaml.h"
#include "tests/unit/unit.h"

/* 2026-11-21T09:08:40.999Z */
#define CREATED (INT64_C(1795252120) * 1000000000 + 999000000)
#define SECOND	INT64_C(1000000000)

static void set(char **field, const char *value)
{
	spec_set(field, value);
}

static struct spec_job *example(void)
{
	struct spec_job *job = spec_job_new(2, 3);

	set(&job->id, "trainer-x7k2pd0");
	set(&job->app, "trainer");
	set(&job->phase, "Running");
	set(&job->backend, "volcano");
	set(&job->owner, "TrainJob/train");
	set(&job->namespace, "training");
	set(&job->queue, "research");
	set(&job->cluster_queue, "gpus");
	set(&job->flavors, "cpu=default,nvidia.com/gpu=a100");
	set(&job->priority_class, "high");
	job->priority = -5;
	job->queue_position = 2;
	set(&job->submitter, "ada@login1");
	job->state = SPEC_RUNNING;
	job->max_retries = 3;
	job->evictions = 2;
	job->time_limit = 14400;
	job->created = CREATED;
	job->started = CREATED + 5 * SECOND;
	spec_transitions_add(&job->transitions, SPEC_RUNNING, "Running", job->started);
	set(&job->roles[0].name, "trainer");
	job->roles[0].desired = 2;
	job->roles[0].minimum = 1;
	job->roles[0].n = 2;
	set(&job->roles[1].name, "yes");
	job->roles[1].desired = 1;
	job->roles[1].minimum = 1;
	job->roles[1].first = 2;
	job->roles[1].n = 1;
	for (unsigned i = 0; i < 3; i++) {
		struct spec_replica *r = &job->replicas[i];
		cleanup_free char *pod = text_print("trainer-x7k2pd0-trainer-%u-0", i);

		r->role = i / 2;
		r->id = i % 2;
		r->state = i == 1 ? SPEC_FAILED : SPEC_RUNNING;
		set(&r->pod, pod);
		set(&r->node, "gpu-17");
		r->started = CREATED + 6 * SECOND;
	}
	job->replicas[0].deadline = CREATED + 14405 * SECOND;
	job->replicas[2].deadline = CREATED + 14406 * SECOND;
	job->replicas[1].exit_code = 137;
	job->replicas[1].signal = 9;
	job->replicas[1].attempt = 2;
	spec_replica_add_log(&job->replicas[1], "p.c.0", NULL);
	spec_replica_add_log(&job->replicas[1], "p.c.1", NULL);
	job->replicas[1].logs[0].gap = UINT64_C(18446744073709551614);
	job->replicas[1].logs[1].gap = 1;
	job->replicas[1].logs[1].waiting = true;
	job->replicas[1].finished = CREATED + 60 * SECOND;
	set(&job->replicas[1].reason, "OOMKilled");
	set(&job->replicas[1].message, "no: memory, {left}\n\x1b[0m");
	return job;
}

static void test_time(void **state)
{
	char text[32];

	spec_time_text(CREATED, text);
	assert_string_equal(text, "2026-11-21T09:08:40Z");
	spec_time_text(1, text);
	assert_string_equal(text, "1970-01-01T00:00:00Z");
	spec_time_text(INT64_MAX, text);
	assert_string_equal(text, "2262-04-11T23:47:16Z");
	spec_time_text(0, text);
	assert_string_equal(text, "");
}

static void test_yaml(void **state)
{
	cleanup_job struct spec_job *job = example();
	cleanup_free char *text = NULL;
	size_t len;

	spec_status_yaml(job, &text, &len);
	assert_int_equal(len, strlen(text));
	assert_string_equal(
		text, "id: trainer-x7k2pd0\n"
		      "app: trainer\n"
		      "state: RUNNING\n"
		      "phase: Running\n"
		      "reason: \"\"\n"
		      "message: \"\"\n"
		      "last_words: \"\"\n"
		      "backend: volcano\n"
		      "kind: volcano\n"
		      "owner: TrainJob/train\n"
		      "namespace: training\n"
		      "queue: research\n"
		      "cluster_queue: gpus\n"
		      "flavors:\n"
		      "- resource: cpu\n"
		      "  flavor: default\n"
		      "- resource: nvidia.com/gpu\n"
		      "  flavor: a100\n"
		      "priority_class: high\n"
		      "priority: -5\n"
		      "queue_position: 2\n"
		      "submitter: ada@login1\n"
		      "retries: 0\n"
		      "max_retries: 3\n"
		      "evictions: 2\n"
		      "time_limit: 14400\n"
		      "deadline: 2026-11-21T13:08:45Z\n"
		      "created: 2026-11-21T09:08:40Z\n"
		      "started: 2026-11-21T09:08:45Z\n"
		      "finished: null\n"
		      "stale_since: null\n"
		      "pending_command: null\n"
		      "ignored_command: null\n"
		      "logs_waiting: 1\n"
		      "transitions:\n"
		      "- time: 2026-11-21T09:08:45Z\n"
		      "  state: RUNNING\n"
		      "  phase: Running\n"
		      "roles:\n"
		      "- name: trainer\n"
		      "  desired: 2\n"
		      "  minimum: 1\n"
		      "  running: 1\n"
		      "  waiting: 0\n"
		      "  succeeded: 0\n"
		      "  failed: 1\n"
		      "  replicas:\n"
		      "  - {id: 0, state: RUNNING, pod: trainer-x7k2pd0-trainer-0-0, node: gpu-17, "
		      "attempt: 0, exit_code: null, signal: null, reason: \"\", message: \"\"}\n"
		      "  - {id: 1, state: FAILED, pod: trainer-x7k2pd0-trainer-1-0, node: gpu-17, "
		      "attempt: 2, exit_code: 137, signal: 9, reason: OOMKilled, "
		      "message: \"no: memory, {left}\\n\\x1b[0m\", gap: 18446744073709551615}\n"
		      "- name: \"yes\"\n"
		      "  desired: 1\n"
		      "  minimum: 1\n"
		      "  running: 1\n"
		      "  waiting: 0\n"
		      "  succeeded: 0\n"
		      "  failed: 0\n"
		      "  replicas:\n"
		      "  - {id: 0, state: RUNNING, pod: trainer-x7k2pd0-trainer-2-0, node: gpu-17, "
		      "attempt: 0, exit_code: null, signal: null, reason: \"\", message: \"\"}\n");
}

/* status and status.json contain the same numbers and texts. */
static void test_json(void **state)
{
	static const char head[] = "{\n  \"id\": \"trainer-x7k2pd0\",\n  \"app\": \"trainer\",\n";
	cleanup_job struct spec_job *job = example();
	cleanup(spec_yaml_freep) struct spec_yaml *yaml = NULL;
	struct spec_errors e = SPEC_ERRORS_INIT;
	cleanup_free char *text = NULL, *status = NULL;
	struct json_object *from_json, *from_yaml;
	size_t len;

	spec_status_json(job, &text, &len);
	assert_int_equal(len, strlen(text));
	assert_memory_equal(text, head, strlen(head));
	assert_string_equal(text + len - 3, "\n}\n");
	from_json = json_tokener_parse(text);
	/* test-usage.c tests the usage. */
	assert_true(json_object_object_get_ex(from_json, "usage", NULL));
	json_object_object_del(from_json, "usage");

	spec_status_yaml(job, &status, &len);
	assert_int_equal(spec_yaml_parse(status, len, &yaml, &e), 0);
	from_yaml = spec_yaml_to_json(yaml);
	assert_true(json_object_equal(from_json, from_yaml));
	json_object_put(from_json);
	json_object_put(from_yaml);
}

static void test_replica(void **state)
{
	cleanup_job struct spec_job *job = example();
	cleanup_free char *text = NULL;
	size_t len;

	spec_status_replica(job, &job->replicas[1], &text, &len);
	assert_int_equal(len, strlen(text));
	assert_string_equal(text, "id: 1\n"
				  "state: FAILED\n"
				  "pod: trainer-x7k2pd0-trainer-1-0\n"
				  "node: gpu-17\n"
				  "attempt: 2\n"
				  "exit_code: 137\n"
				  "signal: 9\n"
				  "reason: OOMKilled\n"
				  "message: \"no: memory, {left}\\n\\x1b[0m\"\n"
				  "started: 2026-11-21T09:08:46Z\n"
				  "finished: 2026-11-21T09:09:40Z\n"
				  "deadline: null\n"
				  "gap: 18446744073709551615\n"
				  "logs_waiting: 1\n");
}

static void test_ctl(void **state)
{
	static const struct {
		unsigned actions;
		const char *text;
	} rows[] = {
		{0, ""},
		{1u << SPEC_SUSPEND | 1u << SPEC_TERMINATE, "suspend\nterminate\n"},
		{(1u << SPEC_N_ACTIONS) - 1,
		 "suspend\nresume\nrestart\nterminate\nrelease\nqueue NAME\npriority CLASS\n"},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_job struct spec_job *job = example();
		cleanup_free char *text = NULL;
		size_t len;

		job->actions = rows[i].actions;
		spec_status_ctl(job, UINT_MAX, &text, &len);
		assert_string_equal(text, rows[i].text);
		assert_int_equal(len, strlen(text));
	}
}

static void test_change(void **state)
{
	static const struct {
		enum spec_state state;
		bool history, gone;
		const char *reason, *line;
	} rows[] = {
		{SPEC_RUNNING, false, false, "", "RUNNING\t\n"},
		{SPEC_FAILED, false, false, "a\tb\nc\\d\\t", "FAILED\ta\\tb\\nc\\\\d\\\\t\n"},
		{SPEC_FAILED, true, false, "Error", "FAILED\tRemoved\n"},
		{SPEC_FAILED, false, true, "Error", "FAILED\tRemoved\n"},
		{SPEC_RUNNING, false, true, "Error", "CANCELLED\tRemoved\n"},
	};
	cleanup_job struct spec_job *job = example();
	cleanup_free char *line = NULL;

	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_free char *want =
			text_print("2026-11-21T09:08:40Z\ttrainer-x7k2pd0\t%s", rows[i].line);

		free(take_ptr(line));
		job->state = rows[i].state;
		job->history = rows[i].history;
		set(&job->reason, rows[i].reason);
		line = spec_status_change(job, rows[i].gone, CREATED);
		assert_string_equal(line, want);
	}
	set(&job->id, "\t\t\t");
	free(take_ptr(line));
	line = spec_status_change(job, false, 0);
	assert_string_equal(line, "\t\\t\\t\\t\tRUNNING\tError\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_time), cmocka_unit_test(test_yaml),
		cmocka_unit_test(test_json), cmocka_unit_test(test_replica),
		cmocka_unit_test(test_ctl),  cmocka_unit_test(test_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
