/* SPDX-License-Identifier: MIT */
/*
 * When a replica is started: in turn, after it was recorded, and again after a pause. The test
 * plays the record, the helpers and the logs.
 */
#include "tests/unit/backend/client/fake_net.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/local/replica.h"
#include "tests/unit/noted.h"
#include "tests/unit/spec/app-document.h"

#define N_REPLICAS 12
#define AT_ONCE	   8 /* number of starts that wait for the disk at the same time, as in replica.c */

struct task {
	const struct task_events *events;
	void *data;
};

static struct {
	struct local_replicas *all;
	struct spec_record *rec;
	struct local_replica_job job;
	struct local_replica *reps[N_REPLICAS];
	struct task tasks[N_REPLICAS];
	size_t n_tasks;	 /* number of started tasks */
	size_t n_failed; /* number of failed replicas */
	size_t n_live;
	uint64_t changes, saved; /* changes of the record, and the last one that is on disk */
	int err;		 /* an errno: the next starts fail */
} rig;

/* --- record.h --- */

struct spec_record *local_record_spec(const struct local_record *r)
{
	return rig.rec;
}

uint64_t local_record_changed(struct local_record *r)
{
	return ++rig.changes;
}

uint64_t local_record_saved(const struct local_record *r)
{
	return rig.saved;
}

void local_record_tried(struct local_record *r)
{
}

void local_record_started(struct local_record *r, int64_t time)
{
}

void local_record_used(struct local_record *r)
{
	(void)r;
}

void local_record_runs(struct local_record *r)
{
}

/* --- task.h --- */

static void refuse(void *data)
{
	const struct task *task = data;

	task->events->prepared(task->data);
	task->events->ended(task->data, &(struct task_end){.how = TASK_NOT_STARTED,
							   .why = TASK_HELPER,
							   .err = rig.err,
							   .exit_code = -1});
}

struct task *task_start(struct tasks *tasks, const struct task_config *config,
			const struct task_events *events, void *data)
{
	static struct task refused;
	struct task *task = rig.err ? &refused : &rig.tasks[rig.n_tasks++];

	assert_string_equal(config->dir, "/state/output/j");
	*task = (struct task){.events = events, .data = data};
	if (rig.err)
		loop_post(NULL, refuse, task);
	return task;
}

struct task *task_adopt(struct tasks *tasks, const char *dir, const char *name, int fd,
			const struct task_events *events, void *data)
{
	return NULL;
}

void task_find(struct tasks *tasks, const char *dir, const char *name, struct task_found *ret)
{
}

void task_signal(struct task *task, int sig)
{
}

void task_release(struct task *task)
{
}

void task_clean(const char *dir)
{
}

/* --- output.h --- */

int output_log_begin(struct output_job *j, const char *key, const char *prefix, bool anew)
{
	if (!anew) /* the log of an earlier daemon */
		note("begin %s", key);
	return 0;
}

void output_log_grown(struct output_job *j, const char *key)
{
}

void output_log_end(struct output_job *j, const char *key, loop_fn fn, void *data)
{
	note("end %s", key);
	if (fn)
		loop_post(NULL, fn, data);
}

/* --- job.h --- */

static void on_lives(void *data, struct local_replica *rep, bool live)
{
	assert_null(data);
	rig.n_live += live ? 1 : (size_t)-1;
}

static void on_failed(void *data, struct local_replica *rep)
{
	assert_null(data);
	rig.n_failed++;
}

static void on_idle(void *data, struct local_replica *rep)
{
	assert_null(data);
	assert_true(local_replica_is_idle(rep));
}

/* --- the rig --- */

static int setup(void **state)
{
	static const struct local_replica_events events = {on_lives, on_failed, on_idle};
	static const char text[] = "name: app\nroles: [{name: a, image: i, entrypoint: sh, "
				   "num_replicas: 12, resource: {cpu: 1, memMB: 1, gpu: 0}}]\n";
	static char dir[] = "/state/output/j";
	cleanup(spec_errors_clear) struct spec_errors e = SPEC_ERRORS_INIT;
	struct spec_app *app = NULL;

	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	forget_noted();
	diag_setup(DIAG_DEBUG, false);
	assert_int_equal(document_parse(text, strlen(text), "/", &app, &e), 0);
	rig.rec = spec_record_new(app, &(struct spec_record_origin){.id = "j",
								    .uid = "u",
								    .submission = "s",
								    .submitter = "ada@login1",
								    .work_dir = "/",
								    .created = 1});
	rig.all = local_replicas_new(NULL, NULL, 1000);
	rig.job = (struct local_replica_job){.all = rig.all, .dir = dir, .events = &events};
	for (size_t i = 0; i < N_REPLICAS; i++) {
		rig.reps[i] = local_replica_new(&rig.job, i);
		local_replica_open_log(rig.reps[i]);
	}
	return 0;
}

static int teardown(void **state)
{
	for (size_t i = 0; i < N_REPLICAS; i++)
		local_replica_free(rig.reps[i]);
	assert_null(fake.timers);
	local_replicas_free(rig.all);
	spec_record_free(rig.rec);
	fake_run();
	return 0;
}

static const struct spec_replica *replica(size_t i)
{
	return &rig.rec->job->replicas[i];
}

/* Start replica I, unless ERR (an errno, or 0) prevents that. */
static void begin(size_t i, int err)
{
	rig.err = err;
	local_replica_begin(rig.reps[i]);
	fake_run();
}

/* The program of task I runs since TIME. */
static void runs(size_t i, int64_t time)
{
	rig.tasks[i].events->started(rig.tasks[i].data, time);
}

/*
 * Only a few starts wait for the disk at the same time. When one of them no longer waits, the next
 * one begins.
 */
static void test_in_turn(void **state)
{
	for (size_t i = 0; i < N_REPLICAS; i++)
		local_replica_begin(rig.reps[i]);
	fake_run();
	assert_int_equal(rig.n_tasks, 0); /* nothing is started before local_replicas_begin */
	local_replicas_begin(rig.all);
	fake_run();
	assert_int_equal(rig.n_tasks, AT_ONCE);
	for (size_t i = 0; i < N_REPLICAS; i++) {
		assert_int_equal(rig.n_tasks, min_of(AT_ONCE + i, (size_t)N_REPLICAS));
		assert_ptr_equal(rig.tasks[i].data, rig.reps[i]);
		rig.tasks[i].events->prepared(rig.tasks[i].data);
		fake_run();
	}
	assert_int_equal(rig.n_live, N_REPLICAS);
}

/*
 * A start lacks a resource that may become available. It is retried after growing pauses, for about
 * half a minute in all, as the same attempt. Then the replica fails.
 */
static void test_start_delayed(void **state)
{
	static const unsigned pauses[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};

	local_replicas_begin(rig.all);
	begin(0, ENOMEM);
	for (size_t i = 0; i < array_size(pauses); i++) {
		assert_string_equal(replica(0)->reason, "StartDelayed");
		assert_int_equal(rig.n_failed, 0);
		assert_false(fake_wait(pauses[i] * 3 / 4 - 1));
		assert_true(fake_wait(pauses[i] * 5 / 4));
	}
	assert_int_equal(rig.n_failed, 1);
	assert_int_equal(replica(0)->state, SPEC_FAILED);
	assert_int_equal(replica(0)->attempt, 0);
	assert_null(fake.timers);
	assert_int_equal(rig.n_live, 0);
	/* After a successful start, the next failure counts as the first one again. */
	begin(1, ENOMEM);
	assert_true(fake_wait(125));
	rig.err = 0;
	assert_true(fake_wait(250));
	assert_int_equal(rig.n_tasks, 1);
	runs(0, 5);
	assert_int_equal(replica(1)->state, SPEC_RUNNING);
	assert_string_equal(replica(1)->reason, "");
}

/* Descriptors become free when other jobs end, however long that takes. */
static void test_waits_for_descriptors(void **state)
{
	local_replicas_begin(rig.all);
	begin(0, EMFILE);
	for (int i = 0; i < 50; i++)
		assert_true(fake_wait(12500));
	assert_string_equal(replica(0)->reason, "StartDelayed");
	assert_int_equal(rig.n_failed, 0);
	rig.err = 0;
	assert_true(fake_wait(12500));
	assert_int_equal(rig.n_tasks, 1);
}

/*
 * A program that fails immediately is started again after growing pauses. If it ran for a while,
 * the pauses are short again. Changes of the wall clock do not matter.
 */
static void test_slow_down(void **state)
{
	static const unsigned pauses[] = {100, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};
	int64_t hour = 3600 * INT64_C(1000000000);

	local_replicas_begin(rig.all);
	begin(0, 0);
	runs(0, loop_time_ns() - hour);
	for (size_t i = 0; i < array_size(pauses); i++) {
		unsigned ms = local_replica_slow_down(rig.reps[0]);

		assert_in_range(ms, pauses[i] * 3 / 4, pauses[i] * 5 / 4);
	}
	runs(0, loop_time_ns() + hour);
	fake.now += 29999;
	assert_in_range(local_replica_slow_down(rig.reps[0]), 7500, 12500);
	fake.now += 1;
	assert_in_range(local_replica_slow_down(rig.reps[0]), 75, 125);
}

/* If the job is suspended before the replica's start is due, the replica is not started. */
static void test_suspended(void **state)
{
	local_replica_begin(rig.reps[0]);
	rig.rec->job->suspended = true;
	local_replicas_begin(rig.all);
	fake_run();
	assert_int_equal(rig.n_tasks, 0);
	rig.rec->job->suspended = false;
	local_replica_resume(rig.reps[0]);
	fake_run();
	assert_int_equal(rig.n_tasks, 1);
}

/* A new attempt is recorded before it is started. */
static void test_recorded_first(void **state)
{
	local_replicas_begin(rig.all);
	begin(0, 0);
	rig.tasks[0].events->prepared(rig.tasks[0].data);
	runs(0, 5);
	rig.tasks[0].events->ended(rig.tasks[0].data,
				   &(struct task_end){.how = TASK_ENDED, .exit_code = 1});
	fake_run();
	assert_int_equal(rig.n_failed, 1);
	begin(0, 0);
	assert_int_equal(replica(0)->attempt, 1);
	/* the exit code of the previous attempt is cleared */
	assert_int_equal(replica(0)->exit_code, -1);
	assert_int_equal(rig.n_tasks, 1);
	assert_true(local_replica_is_delayed(rig.reps[0], -ENOSPC));
	rig.saved = rig.changes - 1;
	local_replica_recorded(rig.reps[0], rig.saved);
	fake_run();
	assert_int_equal(rig.n_tasks, 1);
	rig.saved = rig.changes;
	local_replica_recorded(rig.reps[0], rig.saved);
	fake_run();
	assert_int_equal(rig.n_tasks, 2);
	assert_false(local_replica_is_delayed(rig.reps[0], -ENOSPC));
}

/* Make replica I's third attempt the newest one of an earlier daemon, and adopt it in STATE. */
static void adopt(size_t i, enum task_state state)
{
	const struct task_found found = {.state = state, .fd = -1};

	spec_record_attempt(rig.rec, i, 1);
	spec_record_attempt(rig.rec, i, 2);
	local_replica_adopt(rig.reps[i], &found);
	if (state != TASK_RUNS)
		local_replica_adopted(rig.reps[i], &found);
}

/*
 * Attempts that are over are merged one after the other, the newest one last. While the newest one
 * runs, its log begins at once.
 */
static void test_reopened_in_order(void **state)
{
	rig.rec->plans[0].ended = true;
	adopt(0, TASK_NONE);
	assert_done("begin a-0.0, end a-0.0");
	assert_int_equal(rig.n_live, 1);
	fake_run();
	assert_done("begin a-0.1, end a-0.1, begin a-0.2, end a-0.2");
	assert_int_equal(rig.n_live, 0);
	adopt(1, TASK_DROPPED);
	fake_run();
	assert_done("begin a-1.0, end a-1.0, begin a-1.1, end a-1.1, begin a-1.2, end a-1.2");
	assert_int_equal(rig.n_failed, 1);
	adopt(2, TASK_RUNS);
	assert_done("begin a-2.0, end a-2.0, begin a-2.2");
	fake_run();
	assert_done("begin a-2.1, end a-2.1");
	assert_int_equal(rig.n_live, 1);
}

int main(void)
{
#define REPLICA_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		REPLICA_TEST(test_in_turn),
		REPLICA_TEST(test_start_delayed),
		REPLICA_TEST(test_waits_for_descriptors),
		REPLICA_TEST(test_slow_down),
		REPLICA_TEST(test_suspended),
		REPLICA_TEST(test_recorded_first),
		REPLICA_TEST(test_reopened_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
