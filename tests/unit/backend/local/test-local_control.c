/* SPDX-License-Identifier: MIT */
/* Requests about running local jobs: retries, suspend, restart, cancel and forget. */
#include "tests/unit/backend/local/local-world.h"

/* --- retries --- */

static bool has_begun_again(struct world *w, const char *id)
{
	cleanup_job const struct spec_job *job = job_of(w, id);

	return job->replicas[0].attempt == 1;
}

/*
 * Between two attempts, a replica waits to be started again. The job's phase and the replica's
 * state show that.
 */
static void test_between_attempts(void **state)
{
	static const struct {
		const char *phase;
		enum spec_state state;
	} steps[] = {
		{"Pending", SPEC_PENDING},
		{"Running", SPEC_RUNNING},
		{"Restarting", SPEC_PENDING},
		{"Running", SPEC_RUNNING},
	};
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w,
					  "while ! [ -e fail ]; do sleep 0.02; done\n"
					  "        [ -e failed ] && exec sleep 1000\n"
					  "        touch failed; exit 1",
					  1, "    max_retries: 1\n");
	cleanup_job const struct spec_job *job = NULL;

	until(has_state(w, id, SPEC_RUNNING));
	touch(w, "fail");
	until(has_begun_again(w, id) && has_phase(w, id, "Running"));
	job = job_of(w, id);
	assert_int_equal(control(w, id, SPEC_TERMINATE), 0);
	assert_int_equal(job->transitions.n, array_size(steps));
	for (size_t i = 0; i < array_size(steps); i++) {
		assert_string_equal(job->transitions.v[i].phase, steps[i].phase);
		assert_string_equal(spec_state_name(job->transitions.v[i].state),
				    spec_state_name(steps[i].state));
	}
}

/* --- ctl --- */

static void test_suspend_and_resume(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(
		w,
		"setsid sh -c 'echo $$; exec sleep 1000' & while ! [ -e go ]; do sleep 0.02; done",
		1, NULL);
	pid_t daemon = log_pid(w, id, "main-0.0");

	assert_int_equal(control(w, id, SPEC_RESUME), -EINVAL);
	assert_int_equal(control(w, id, SPEC_SUSPEND), 0);
	until(has_phase(w, id, "Suspended")); /* kxfs waits at most 5 s for the programs */
	assert_true(has_state(w, id, SPEC_CANCELLED));
	until(is_stopped(daemon));
	assert_int_equal(control(w, id, SPEC_SUSPEND), -EINVAL);
	touch(w, "go");
	pause_ms(100);
	assert_true(has_phase(w, id, "Suspended"));
	assert_int_equal(control(w, id, SPEC_RESUME), 0);
	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_int_equal(control(w, id, SPEC_RESUME), -EINVAL);
	assert_int_equal(control(w, id, SPEC_TERMINATE), -EINVAL);
	until(!is_alive(daemon));
}

static void test_restart(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w, "echo $$; exec sleep 1000", 2, NULL);
	pid_t first = log_pid(w, id, "main-0.0");
	cleanup_job const struct spec_job *job = NULL;

	log_pid(w, id, "main-1.0");
	assert_int_equal(control(w, id, SPEC_RESTART), 0);
	assert_true(is_alive(log_pid(w, id, "main-0.1")));
	assert_false(is_alive(first));
	assert_true(is_alive(log_pid(w, id, "main-1.1")));
	until(has_phase(w, id, "Running")); /* kxfs waits at most 5 s for the programs */
	/* A suspended program is restarted too. */
	assert_int_equal(control(w, id, SPEC_SUSPEND), 0);
	assert_int_equal(control(w, id, SPEC_RESTART), 0);
	assert_true(is_alive(log_pid(w, id, "main-1.2")));
	until(has_phase(w, id, "Running"));
	job = job_of(w, id);
	assert_int_equal(job->state, SPEC_RUNNING);
	assert_int_equal(job->retries, 0);
	assert_int_equal(cancel(w, id), 0);
}

static void test_terminate(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = NULL;
	cleanup_job const struct spec_job *job = NULL;
	pid_t pid;

	world_stop(w);
	w->config.grace_ms = 300;
	assert_int_equal(world_start(w), 0);
	id = submit_sh(w, "trap '' TERM; echo $$; while :; do sleep 0.05; done", 2, NULL);
	pid = log_pid(w, id, "main-0.0");
	log_pid(w, id, "main-1.0");
	assert_int_equal(control(w, id, SPEC_SUSPEND), 0);
	assert_int_equal(control(w, id, SPEC_TERMINATE), 0);
	until(has_phase(w, id, "Terminated"));
	job = job_of(w, id);
	assert_int_equal(job->state, SPEC_FAILED);
	assert_string_equal(job->reason, "Terminated");
	assert_false(job->history);
	assert_int_equal(job->replicas[1].state, SPEC_CANCELLED);
	assert_int_equal(job->replicas[1].signal, SIGKILL);
	assert_false(is_alive(pid));
}

/* --- cancel and forget --- */

static void test_cancel(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(
		w, "trap 'echo last words; exit 0' TERM; echo $$; while :; do sleep 0.02; done", 1,
		NULL);
	pid_t pid = log_pid(w, id, "main-0.0");

	assert_int_equal(cancel(w, id), 0);
	assert_false(is_in(w, BACKEND_JOBS, id));
	assert_true(is_in(w, BACKEND_HISTORY, id));
	assert_true(has_state(w, id, SPEC_CANCELLED));
	until(has_phase(w, id, "Cancelled"));
	assert_false(is_alive(pid));
	assert_true(log_has(w, id, "main-0.0", "\nlast words\n"));
	assert_true(log_has(w, id, NULL, "\nmain/0 last words\n"));
	until(!exists(w, "state/jobs/.%s.new", folder_key(w->state, id)));
	assert_int_equal(forget(w, id), 0);
	assert_false(is_in(w, BACKEND_HISTORY, id));
	assert_false(exists(w, "state/output/%s", folder_key(w->state, id)));
}

static void test_cancel_other(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w, "exec sleep 1000", 1, NULL);
	cleanup_answer struct answer a = {0};

	sem_init(&a.done, 0, 0);
	backend_cancel(w->b, id, "another-uid", answer_take, &a);
	answer_wait(&a);
	assert_int_equal(a.err, -ESTALE);
	assert_true(is_in(w, BACKEND_JOBS, id));
	assert_true(has_state(w, id, SPEC_RUNNING));
}

/* A program that ignores SIGTERM, one that has daemons, and one that is stopped. */
static void test_cancel_of_the_unwilling(void **state)
{
	static const char *const scripts[] = {
		"trap '' TERM; echo $$; while :; do sleep 0.05; done",
		("setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & exec "
		 "sleep "
		 "1000"),
		"echo $$; exec sleep 1000",
	};
	struct world *w = *state;

	world_stop(w);
	w->config.grace_ms = 300;
	assert_int_equal(world_start(w), 0);
	for (size_t i = 0; i < array_size(scripts); i++) {
		cleanup_free char *id = submit_sh(w, scripts[i], 2, NULL);
		pid_t pids[] = {log_pid(w, id, "main-0.0"), log_pid(w, id, "main-1.0")};

		if (i == 2)
			assert_int_equal(control(w, id, SPEC_SUSPEND), 0);
		assert_int_equal(cancel(w, id), 0);
		assert_true(has_state(w, id, SPEC_CANCELLED));
		until(has_phase(w, id, "Cancelled"));
		assert_false(is_alive(pids[0]));
		assert_false(is_alive(pids[1]));
	}
}

static void test_cancel_when_finished(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w, "echo done", 1, NULL);

	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_int_equal(cancel(w, id), 0);
	assert_true(is_in(w, BACKEND_HISTORY, id));
	assert_false(is_in(w, BACKEND_JOBS, id));
	assert_true(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(log_is(w, id, "main-0.0", "done\n"));
	assert_int_equal(forget(w, id), 0);
	assert_false(exists(w, "state/output/%s", folder_key(w->state, id)));
}

/* Make the disk accept the record of job ID (WRITABLE), or refuse it. */
static void record_writable(struct world *w, const char *id, bool writable)
{
	cleanup_free char *path = text_print("%s/jobs/.%s.new", w->state, folder_key(w->state, id));

	w->refuses = true;
	/* kxfs may be writing the record just now. */
	until((writable ? rmdir(path) : mkdir(path, 0700)) == 0);
}

/*
 * If the disk refuses to record a command, kxfs reports an error. Otherwise the command would be
 * lost after a crash.
 */
static void test_orders_that_can_t_be_recorded(void **state)
{
	struct world *w = *state;
	cleanup_free char *first = NULL, *id = NULL;

	world_stop(w);
	w->config.jobs = 1;
	assert_int_equal(world_start(w), 0);
	first = submit_sh(w, "echo $$; exec sleep 1000", 1, NULL);
	log_pid(w, first, "main-0.0");
	record_writable(w, first, false);
	assert_int_equal(control(w, first, SPEC_SUSPEND), -EISDIR);
	until(has_phase(w, first, "Suspended"));
	record_writable(w, first, true);
	assert_int_equal(control(w, first, SPEC_RESUME), 0);

	id = submit_sh(w, "exec sleep 1000", 1, NULL);
	record_writable(w, id, false);
	assert_int_equal(cancel(w, id), -EISDIR);
	until(has_phase(w, id, "Cancelled"));
	assert_int_equal(cancel(w, id), -EISDIR);
	assert_true(is_in(w, BACKEND_JOBS, id));
	assert_false(is_in(w, BACKEND_HISTORY, id));
	record_writable(w, id, true);
	/* Meanwhile the record was written. */
	until(is_in(w, BACKEND_HISTORY, id));
	assert_false(is_in(w, BACKEND_JOBS, id));
}

/* When a job is forgotten, its programs get no grace period. */
static void test_forget_while_ending(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = NULL;
	pid_t pid;

	world_stop(w);
	w->config.grace_ms = 30000;
	assert_int_equal(world_start(w), 0);
	id = submit_sh(w, "trap '' TERM; echo $$; while :; do sleep 0.05; done", 1, NULL);
	pid = log_pid(w, id, "main-0.0");
	assert_int_equal(cancel(w, id), 0);
	assert_true(is_alive(pid));
	assert_int_equal(forget(w, id), 0);
	assert_false(is_alive(pid));
	assert_false(is_in(w, BACKEND_HISTORY, id));
	assert_false(exists(w, "state/output/%s", folder_key(w->state, id)));
	w->config.grace_ms = 0;
}

#define world_test(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		world_test(test_between_attempts),
		world_test(test_suspend_and_resume),
		world_test(test_restart),
		world_test(test_terminate),
		world_test(test_cancel),
		world_test(test_cancel_other),
		world_test(test_cancel_of_the_unwilling),
		world_test(test_cancel_when_finished),
		world_test(test_orders_that_can_t_be_recorded),
		world_test(test_forget_while_ending),
	};

	backend_helper(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
