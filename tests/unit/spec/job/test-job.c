/* SPDX-License-Identifier: MIT */
/*
 * Snapshots: their names and fields, the order of logs, how replicas are found, and references from
 * several threads.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>

#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "tests/unit/spec/job/transitions.h"
#include "tests/unit/unit.h"

static void test_words(void **state)
{
	static const char *const names[] = {"SUBMITTED", "PENDING",   "RUNNING", "SUCCEEDED",
					    "FAILED",	 "CANCELLED", "UNKNOWN"};

	assert_int_equal(array_size(names), SPEC_N_STATES);
	for (int i = 0; i < SPEC_N_STATES; i++) {
		bool final = i == SPEC_SUCCEEDED || i == SPEC_FAILED || i == SPEC_CANCELLED;
		cleanup_free char *line = text_print("%s\n", names[i]);

		assert_string_equal(spec_state_name((enum spec_state)i), names[i]);
		assert_string_equal(spec_status_state((enum spec_state)i), line);
		assert_int_equal(spec_state_is_final((enum spec_state)i), final);
	}
}

#define A60 "a1234567890.1234567890.1234567890.1234567890.1234567890.1234"

static void test_actions(void **state)
{
	static const struct {
		const char *text;
		int action;
		const char *argument;
	} table[] = {
		{"suspend", SPEC_SUSPEND, NULL},
		{"abort", SPEC_SUSPEND, NULL},
		{"resume", SPEC_RESUME, NULL},
		{"terminate", SPEC_TERMINATE, NULL},
		{"queue team-1", SPEC_QUEUE, "team-1"},
		{"priority \t a.b", SPEC_PRIORITY, "a.b"},
		{"Suspend", -EINVAL, NULL},
		{"suspend now", -EINVAL, NULL},
		{"", -EINVAL, NULL},
		{"queue", -EINVAL, NULL},
		{"queue ", -EINVAL, NULL},
		{"queue a b", -EINVAL, NULL},
		{"queue ../a", -EINVAL, NULL},
		{"queue A", -EINVAL, NULL},
		{"queue a\"b", -EINVAL, NULL},
		/* The value of a label may have 63 characters, but not 64. */
		{"queue " A60 "567", SPEC_QUEUE, A60 "567"},
		{"queue " A60 "5678", -EINVAL, NULL},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_free char *argument = NULL;

		assert_int_equal(spec_action_parse(table[i].text, &argument), table[i].action);
		assert_true(streq(argument, table[i].argument));
	}
	assert_null(spec_action_argument(SPEC_SUSPEND));
	assert_string_equal(spec_action_argument(SPEC_QUEUE), "NAME");
}

static void test_set(void **state)
{
	char *field = NULL, *other = NULL;

	spec_set(&field, "");
	spec_set(&other, NULL);
	assert_string_equal(field, "");
	assert_ptr_equal(field, other);
	spec_set(&field, "text");
	assert_string_equal(field, "text");
	spec_set(&field, field + 1);
	assert_string_equal(field, "ext");
	spec_set(&field, NULL);
	assert_string_equal(field, "");
	spec_unset(&field);
	assert_null(field);
}

static void test_logs_are_grouped(void **state)
{
	static const char *const add[][2] = {
		{"side.0", "side"}, {"r.0", ""},	{"init.0", "init"},
		{"r.1", NULL},	    {"side.1", "side"},
	};
	static const char *const want[] = {"r.0", "r.1", "side.0", "side.1", "init.0"};
	struct spec_job *job cleanup_job = spec_job_new(0, 1);
	struct spec_replica *r = &job->replicas[0];

	for (size_t i = 0; i < array_size(add); i++)
		spec_replica_add_log(r, add[i][0], add[i][1]);
	assert_int_equal(r->n_logs, array_size(want));
	for (size_t i = 0; i < array_size(want); i++)
		assert_string_equal(r->logs[i].key, want[i]);
}

static void test_find_replica(void **state)
{
	static const char *const names[] = {"a-0", "a-1", "a-1-0", "odd", "b-7"};
	static const char *const others[] = {"a-2", "a-01", "a-", "a-99999999999999999999", ""};
	struct spec_job *job cleanup_job = spec_job_new(2, array_size(names));

	for (size_t i = 0; i < array_size(names); i++)
		spec_set(&job->replicas[i].name, names[i]);
	job->roles[0].n = 2;
	job->roles[1].first = 2;
	job->roles[1].n = 3;
	for (size_t i = 0; i < array_size(names); i++)
		assert_ptr_equal(spec_job_replica(job, names[i]), &job->replicas[i]);
	for (size_t i = 0; i < array_size(others); i++)
		assert_null(spec_job_replica(job, others[i]));
}

/*
 * The first replica that failed. A failed replica without an end time counts as later than those
 * with one, whatever its position.
 */
static void test_first_failed(void **state)
{
	struct spec_job *job cleanup_job = spec_job_new(1, 4);
	size_t n;

	assert_null(spec_job_first_failed(job, &n));
	assert_int_equal(n, 0);
	for (size_t i = 0; i < 3; i++)
		job->replicas[i].state = SPEC_FAILED;
	job->replicas[3].finished = 1; /* this replica has not failed */
	assert_ptr_equal(spec_job_first_failed(job, NULL), &job->replicas[0]);
	job->replicas[1].finished = 30;
	job->replicas[2].finished = 20;
	assert_ptr_equal(spec_job_first_failed(job, &n), &job->replicas[2]);
	assert_int_equal(n, 3);
	job->replicas[0].finished = 20;
	assert_ptr_equal(spec_job_first_failed(job, NULL), &job->replicas[0]);
}

/*
 * Each attempt of a step of a Workflow is a role. An attempt that was followed by another one did
 * not make the job fail. Items of a loop are no attempts.
 */
static void test_first_failed_step(void **state)
{
	static const char *const names[] = {"main(0)", "main(1)", "loop(0:a)(0)",
					    "loop(0:a)(1)[0].in", "loop(1:b)"};
	struct spec_job *job cleanup_job = spec_job_new(array_size(names), array_size(names));
	size_t n;

	spec_set(&job->namespace, "ns");
	for (unsigned i = 0; i < array_size(names); i++) {
		spec_set(&job->roles[i].name, names[i]);
		job->replicas[i].role = i;
		job->replicas[i].finished = 10 + i;
	}
	job->replicas[0].state = job->replicas[2].state = job->replicas[4].state = SPEC_FAILED;
	assert_ptr_equal(spec_job_first_failed(job, &n), &job->replicas[4]);
	assert_int_equal(n, 1);
	job->replicas[1].state = SPEC_FAILED;
	assert_ptr_equal(spec_job_first_failed(job, NULL), &job->replicas[1]);
	/* The roles of a local job may have any names. */
	spec_set(&job->namespace, "");
	assert_ptr_equal(spec_job_first_failed(job, NULL), &job->replicas[0]);
}

/*
 * The first replica with a cause of its own for waiting. A replica that waits for others, or for a
 * restart, does not count.
 */
static void test_first_waiting(void **state)
{
	static const char *const texts[][2] = {
		{"Unschedulable", "3/3 tasks in gang unschedulable: pod group is not ready"},
		{SPEC_REASON_RESTARTING, "killed by signal TERM"},
		{"ImagePullBackOff", "no such host"},
		{"Unschedulable", "0/1 nodes are available"},
		{"ImagePullBackOff", "no such image"},
	};
	struct spec_job *job cleanup_job = spec_job_new(1, array_size(texts));
	size_t n;

	for (size_t i = 0; i < array_size(texts); i++) {
		spec_set(&job->replicas[i].reason, texts[i][0]);
		spec_set(&job->replicas[i].message, texts[i][1]);
	}
	assert_null(spec_job_first_waiting(job, NULL));
	for (size_t i = 0; i < array_size(texts); i++)
		job->replicas[i].state = SPEC_PENDING;
	assert_ptr_equal(spec_job_first_waiting(job, &n), &job->replicas[2]);
	assert_int_equal(n, 2);
	assert_true(spec_replica_waits_for_gang(&job->replicas[0]));
	assert_false(spec_replica_waits_for_gang(&job->replicas[3]));
}

/* Return a job with two logs, with TEXT in each field that is a text, and with a usage. */
static struct spec_job *full_job(const char *text)
{
	static const struct spec_usage usage = {.memory_now = 5};
	static const struct spec_request request = {.cpu = 7};
	struct spec_job *job = spec_job_new(1, 1);
	struct spec_replica *r = &job->replicas[0];
	char **fields[] = {&job->id,	 &job->uid,	  &job->app,	      &job->phase,
			   &job->reason, &job->message,	  &job->backend,      &job->cause.text,
			   &job->queue,	 &job->namespace, &job->submitter,    &job->submission,
			   &r->pod,	 &r->node,	  &r->reason,	      &r->message,
			   &r->name,	 &r->blamed,	  &job->roles[0].name};

	for (size_t i = 0; i < array_size(fields); i++)
		spec_set(fields[i], text);
	spec_replica_add_log(r, "trainer-0.0", "");
	spec_replica_add_log(r, "side-0.0", "side");
	spec_replica_set_usage(r, &usage);
	spec_role_set_request(&job->roles[0], &request);
	spec_transitions_add(&job->transitions, SPEC_RUNNING, text, 1);
	job->object = spec_text_new("{}", 2);
	return job;
}

static void assert_snapshot(const struct spec_job *job, const char *want)
{
	cleanup_free char *text = spec_snapshot_text(job);

	assert_string_equal(text, want);
	assert_string_equal(job->cause.text, "text"); /* a snapshot on disk does not have this */
}

static void change(struct spec_job *job)
{
	static const struct spec_usage usage = {.memory_now = 6};

	spec_set(&job->id, "another");
	spec_set(&job->roles[0].name, "another");
	spec_set(&job->replicas[0].logs[0].key, "another");
	spec_replica_add_log(&job->replicas[0], "trainer-0.1", "");
	spec_replica_set_usage(&job->replicas[0], &usage);
	spec_role_set_request(&job->roles[0], NULL);
	spec_transitions_add(&job->transitions, SPEC_FAILED, "Failed", 2);
}

/*
 * A packed snapshot has the same contents, also if it is packed twice. A copy of it, or of a job
 * that is not packed, can be changed. ASan checks the memory.
 */
static void test_pack(void **state)
{
	struct spec_job *job = full_job("text"), *copy = spec_job_copy(job);
	cleanup_free char *text = spec_snapshot_text(job);
	const struct spec_job *packed cleanup_job = NULL;

	change(copy);
	spec_job_unref(copy);
	assert_snapshot(job, text);
	packed = spec_job_pack(spec_job_pack(job));
	assert_int_equal(packed->refs, 1);
	assert_snapshot(packed, text);
	copy = spec_job_copy(packed);
	assert_ptr_equal(copy->object, packed->object);
	assert_snapshot(copy, text);
	change(copy);
	assert_snapshot(packed, text);
	assert_int_equal(copy->replicas[0].n_logs, 3);
	assert_string_equal(copy->transitions.v[1].phase, "Failed");
	spec_job_unref(copy);
}

/*
 * Ten thousand finished jobs stay in memory, and the cost of each is limited. It is one block, not
 * much larger than its texts.
 */
static void test_memory(void **state)
{
	const char *uid = "0b9f6f2e-7a59-4b1e-9c0a-3d2f1e0c9b8a";
	const struct spec_job *job cleanup_job = spec_job_pack(full_job(uid));
	const struct spec_replica *r = &job->replicas[0];
	size_t size = malloc_usable_size((void *)(uintptr_t)job);
	const void *parts[] = {job->roles,
			       r,
			       r->logs,
			       r->logs[1].container,
			       job->id,
			       r->node,
			       job->transitions.v,
			       job->transitions.v[0].phase};

	assert_in_range(size, 1, 576 + 20 * (strlen(uid) + 1) + 64 + 64);
	for (size_t i = 0; i < array_size(parts); i++)
		assert_in_range((uintptr_t)parts[i], (uintptr_t)job, (uintptr_t)job + size - 1);
}

#define THREADS 4
#define ROUNDS	20000

static const struct spec_job *shared;

static void *hold_and_drop(void *data)
{
	for (int i = 0; i < ROUNDS; i++) {
		const struct spec_job *mine cleanup_job = spec_job_ref(shared);

		if (!streq(mine->id, "shared"))
			return (void *)1;
	}
	spec_job_unref(shared);
	return NULL;
}

/* The thread that drops the last reference frees the snapshot. TSan and ASan check this. */
static void test_threads(void **state)
{
	pthread_t threads[THREADS];
	struct spec_job *job = spec_job_new(1, 1);
	void *result;

	spec_set(&job->id, "shared");
	shared = job;
	for (int i = 1; i < THREADS; i++)
		spec_job_ref(job);
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, hold_and_drop, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		assert_int_equal(pthread_join(threads[i], &result), 0);
		assert_null(result);
	}
}

/* Two snapshots share a text, which lives until both are freed. */
static void test_text(void **state)
{
	struct spec_text *text = spec_text_new("a\0b-", 3);
	struct spec_job *old = spec_job_new(0, 0), *new = spec_job_new(0, 0);

	old->object = spec_text_ref(text);
	new->object = text;
	spec_job_unref(old);
	assert_int_equal(new->object->len, 3);
	assert_memory_equal(new->object->text, "a\0b", 4);
	spec_job_unref(new);
	spec_text_unref(NULL);
}

#define SECOND INT64_C(1000000000)

static void test_list(void **state)
{
	struct spec_transitions t = {0}, copy = {0};
	char phase[16];

	spec_transitions_add(&t, SPEC_PENDING, "Pending", 5 * SECOND);
	spec_transitions_add(&t, SPEC_PENDING, "Pending", 7 * SECOND);
	spec_transitions_add(&t, SPEC_RUNNING, "Running", 4 * SECOND);
	assert_transitions(&t, "00:00:05 PENDING Pending\n00:00:05 RUNNING Running\n");
	for (unsigned i = 0; i < 2 * SPEC_MAX_TRANSITIONS; i++) {
		snprintf(phase, sizeof(phase), "P%u", i);
		spec_transitions_add(&t, SPEC_RUNNING, phase, i * SECOND);
	}
	assert_int_equal(t.n, SPEC_MAX_TRANSITIONS);
	assert_string_equal(t.v[0].phase, "P64");
	assert_string_equal(t.v[63].phase, "P127");
	spec_transitions_copy(&copy, &t);
	assert_int_equal(copy.n, t.n);
	assert_string_equal(copy.v[63].phase, "P127");
	spec_transitions_clear(&copy);
	spec_transitions_clear(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_actions),
		cmocka_unit_test(test_set),
		cmocka_unit_test(test_logs_are_grouped),
		cmocka_unit_test(test_find_replica),
		cmocka_unit_test(test_pack),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_first_failed),
		cmocka_unit_test(test_first_failed_step),
		cmocka_unit_test(test_first_waiting),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
