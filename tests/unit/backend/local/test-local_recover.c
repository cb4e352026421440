/* SPDX-License-Identifier: MIT */
/*
 * Local jobs when the daemon ends, cleanly or by a crash. For a crash, this program runs itself as
 * the daemon and kills it. Also: how long finished jobs are kept.
 */
#include "tests/unit/backend/local/local-world.h"
#include "tests/unit/clock.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "backend/base/file.h"

/* Run this program as a daemon on ROOT. It submits SCRIPT, then only waits. */
static pid_t daemon_run(struct world *w, const char *script, char *ret_id)
{
	char self[] = "/proc/self/exe", mode[] = "--daemon";
	char *argv[] = {self, mode, w->root, (char *)(uintptr_t)script, NULL};
	cleanup_fd int in = -1;
	posix_spawn_file_actions_t fa;
	int pipe_fd[2];
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe2(pipe_fd, O_CLOEXEC), 0);
	in = pipe_fd[0];
	posix_spawn_file_actions_init(&fa);
	posix_spawn_file_actions_adddup2(&fa, pipe_fd[1], STDOUT_FILENO);
	assert_int_equal(posix_spawn(&pid, self, &fa, NULL, argv, environ), 0);
	posix_spawn_file_actions_destroy(&fa);
	close(pipe_fd[1]);
	n = read(in, ret_id, 63);
	assert_true(n > 0);
	ret_id[n] = '\0';
	return pid;
}

static void daemon_kill(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/*
 * An environment variable with the path of a file. This process and the helpers append their syncs
 * to that file.
 */
#define SYNCED "KXFS_TEST_SYNCED"

int fsync(int fd)
{
	const char *notes = getenv(SYNCED);
	char link[64], path[512];
	ssize_t n;
	FILE *f;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	f = notes && n > 0 ? fopen(notes, "ae") : NULL;
	if (f) {
		fprintf(f, "%.*s\n", (int)n, path);
		fclose(f);
	}
	return (int)syscall(SYS_fsync, fd);
}

static int daemon_main(const char *root, const char *script)
{
	struct world w = {0};
	cleanup_free char *id = NULL;

	snprintf(w.root, sizeof(w.root), "%s", root);
	world_prepare(&w);
	/* Helpers inherit this limit. To them it looks like a full disk. */
	if (strstr(script, "head -c"))
		setrlimit(RLIMIT_FSIZE, &(struct rlimit){65536, 65536});
	if (world_start(&w) < 0)
		return 1;
	id = submit_sh(&w, script, 2, NULL);
	if (write(STDOUT_FILENO, id, strlen(id)) < 0)
		return 1;
	for (;;)
		pause();
}

/* True if the file NAME of the job contains PART now. */
static bool file_has(struct world *w, const char *id, const char *name, const char *part)
{
	cleanup_free char *text = calloc(1, 65536);
	cleanup_fd int fd = -1;
	char path[256];

	assert_non_null(text);
	snprintf(path, sizeof(path), "%s/output/%s/%s", w->state, folder_key(w->state, id), name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, text, 65535) > 0 && strstr(text, part);
}

/* Return the number in line LINE of a log. The first line is 0. */
static pid_t file_pid(struct world *w, const char *id, const char *key, int line)
{
	char path[256], text[64];
	pid_t pid = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/output/%s/logs/%s", w->state, folder_key(w->state, id),
		 key);
	f = fopen(path, "re");
	assert_non_null(f);
	while (line-- >= 0 && fgets(text, sizeof(text), f))
		pid = (pid_t)atol(text);
	fclose(f);
	assert_true(pid > 1);
	return pid;
}

/*
 * Programs continue to run after a crash of the daemon. The next start finds them, all their
 * output, and how they end.
 */
static void test_crash(void **state)
{
	struct world *w = *state;
	cleanup_job const struct spec_job *job = NULL;
	static const char *const keys[] = {"main-0.0", "main-1.0"};
	pid_t pids[2], daemons[2], daemon;
	char id[64];

	world_stop(w);
	daemon = daemon_run(
		w,
		"echo $$; setsid env -i sh -c 'echo $$; echo up; exec sleep 1000' & "
		"while ! [ -e go ]; do sleep 0.02; done; echo after; "
		"while ! [ -e end ]; do sleep 0.02; done; echo last; "
		"touch last-$KXFS_REPLICA; until [ -e last-main-0 -a -e last-main-1 ]; do sleep 0.02; "
		"done; exit 3",
		id);
	for (int i = 0; i < 2; i++) {
		char log[32];

		snprintf(log, sizeof(log), "logs/%s", keys[i]);
		until(file_has(w, id, log, "up"));
		pids[i] = file_pid(w, id, keys[i], 0);
		daemons[i] = file_pid(w, id, keys[i], 1);
	}
	daemon_kill(daemon);
	touch(w, "go");
	until(file_has(w, id, "logs/main-0.0", "after") &&
	      file_has(w, id, "logs/main-1.0", "after"));

	assert_int_equal(world_start(w), 0);
	until(has_state(w, id, SPEC_RUNNING));
	assert_true(is_alive(pids[0]) && is_alive(pids[1]) && is_alive(daemons[0]) &&
		    is_alive(daemons[1]));
	until(log_has(w, id, NULL, "main/0 after\n") && log_has(w, id, NULL, "main/1 after\n"));
	assert_int_equal(control(w, id, SPEC_SUSPEND), 0);
	until(is_stopped(pids[0]) && is_stopped(daemons[1]));
	assert_int_equal(control(w, id, SPEC_RESUME), 0);
	touch(w, "end");
	until(has_state(w, id, SPEC_FAILED));
	for (int i = 0; i < 2; i++) {
		assert_false(is_alive(pids[i]));
		assert_false(is_alive(daemons[i]));
		assert_true(log_has(w, id, keys[i], "\nup\nafter\nlast\n"));
	}
	job = job_of(w, id);
	assert_string_equal(job->phase, "Failed");
	assert_string_equal(job->reason, "Error");
	/*
	 * The first replica that ends also ends the job. The other one may then get SIGTERM before
	 * it has ended by itself.
	 */
	assert_true(job->replicas[0].exit_code == 3 || job->replicas[1].exit_code == 3);
	until(!exists(w, "state/output/%s/tasks", folder_key(w->state, id)));

	/* the record contains the result too */
	world_stop(w);
	assert_int_equal(world_start(w), 0);
	assert_true(has_state(w, id, SPEC_FAILED));
	assert_int_equal(cancel(w, id), 0);
	assert_int_equal(forget(w, id), 0);
}

/*
 * An attempt that ended while no daemon was running keeps its result. It is retried as often as its
 * retry policy allows.
 */
static void test_crash_and_ended(void **state)
{
	struct world *w = *state;
	cleanup_job const struct spec_job *job = NULL;
	char id[64];
	pid_t daemon, pid;

	world_stop(w);
	daemon = daemon_run(
		w, "echo $$; while ! [ -e go ]; do sleep 0.02; done; echo end; kill -TERM $$", id);
	until(file_has(w, id, "logs/main-0.0", "\n") && file_has(w, id, "logs/main-1.0", "\n"));
	pid = file_pid(w, id, "main-0.0", 0);
	daemon_kill(daemon);
	touch(w, "go");
	until(exists(w, "state/output/%s/tasks/0.0", folder_key(w->state, id)) &&
	      exists(w, "state/output/%s/tasks/1.0", folder_key(w->state, id)));
	assert_false(is_alive(pid));
	assert_int_equal(world_start(w), 0);
	until(has_state(w, id, SPEC_FAILED));
	job = job_of(w, id);
	assert_int_equal(job->replicas[0].signal, SIGTERM);
	assert_int_equal(job->replicas[0].exit_code, -1);
	assert_true(job->finished > 0 && job->replicas[0].finished > 0);
	assert_true(log_has(w, id, "main-0.0", "\nend\n"));
}

/*
 * Two attempts failed while no daemon was running. The one that failed first is the reason of the
 * job's failure, and each has the time at which it ended.
 */
static void test_crash_and_ended_in_order(void **state)
{
	struct world *w = *state;
	cleanup_job const struct spec_job *job = NULL;
	struct timespec now;
	char id[64];
	pid_t daemon;

	world_stop(w);
	daemon = daemon_run(w,
			    "echo up; while ! [ -e go-$KXFS_REPLICA ]; do sleep 0.02; done; "
			    "[ $KXFS_REPLICA = main-0 ] && exit 5; exit 7",
			    id);
	until(file_has(w, id, "logs/main-0.0", "up") && file_has(w, id, "logs/main-1.0", "up"));
	daemon_kill(daemon);
	touch(w, "go-main-1");
	until(exists(w, "state/output/%s/tasks/1.0", folder_key(w->state, id)));
	touch(w, "go-main-0");
	until(exists(w, "state/output/%s/tasks/0.0", folder_key(w->state, id)));
	clock_gettime(CLOCK_REALTIME, &now);
	assert_int_equal(world_start(w), 0);
	until(has_state(w, id, SPEC_FAILED));
	job = job_of(w, id);
	assert_string_equal(job->message, "main-1: exit code 7");
	assert_int_equal(job->replicas[1].state, SPEC_FAILED);
	assert_int_equal(job->replicas[0].state, SPEC_CANCELLED);
	assert_int_equal(job->replicas[0].exit_code, 5);
	assert_true(job->replicas[1].finished <= job->replicas[0].finished);
	assert_true(job->replicas[0].finished <= now.tv_sec * INT64_C(1000000000) + now.tv_nsec);
}

/*
 * A helper was killed while no daemon was running. Its program is killed too, and kxfs reports
 * that.
 */
static void test_crash_and_killed(void **state)
{
	struct world *w = *state;
	cleanup_job const struct spec_job *job = NULL;
	char id[64];
	pid_t daemon, pid, guard;

	world_stop(w);
	daemon = daemon_run(w, "echo $$; exec sleep 1000", id);
	until(file_has(w, id, "logs/main-0.0", "\n") && file_has(w, id, "logs/main-1.0", "\n"));
	pid = file_pid(w, id, "main-0.0", 0);
	guard = parent_of(pid);
	daemon_kill(daemon);
	kill(parent_of(guard), SIGKILL);
	until(!is_alive(pid));
	assert_int_equal(world_start(w), 0);
	until(has_state(w, id, SPEC_FAILED));
	job = job_of(w, id);
	assert_string_equal(job->reason, "HelperKilled");
	assert_int_equal(job->replicas[1].state, SPEC_CANCELLED);
}

/*
 * With `linger`, jobs continue after the backend has stopped. The next mount does what was planned.
 */
static void test_linger(void **state)
{
	struct world *w = *state;
	cleanup_free char *runs = NULL, *held = NULL, *cancelled = NULL;
	pid_t pid;

	world_stop(w);
	w->config.linger = true;
	assert_int_equal(world_start(w), 0);
	runs = submit_sh(
		w,
		"echo $$; while ! [ -e go ]; do sleep 0.02; done; echo again; [ -e once ] || "
		"{ touch once; exit 1; }",
		1, "    max_retries: 1\n");
	held = submit_sh(w, "echo $$; exec sleep 1000", 1, NULL);
	cancelled = submit_sh(w, "echo $$; trap '' TERM; while :; do sleep 0.05; done", 1, NULL);
	pid = log_pid(w, runs, "main-0.0");
	log_pid(w, held, "main-0.0");
	log_pid(w, cancelled, "main-0.0");
	assert_int_equal(control(w, held, SPEC_SUSPEND), 0);
	world_stop(w);
	assert_true(is_alive(pid));
	assert_int_equal(world_helpers(w, NULL), 3);
	touch(w, "go");
	until(exists(w, "state/output/%s/tasks/0.0", folder_key(w->state, runs)));
	w->config.linger = false;
	w->config.grace_ms = 200;
	assert_int_equal(world_start(w), 0);
	assert_true(has_phase(w, held, "Suspended"));
	assert_int_equal(control(w, held, SPEC_RESUME), 0);
	assert_int_equal(cancel(w, cancelled), 0);
	until(has_phase(w, cancelled, "Cancelled"));
	until(has_state(w, runs, SPEC_SUCCEEDED));
	assert_true(log_is(w, runs, "main-0.1", "") || log_has(w, runs, "main-0.1", "\nagain\n"));
	pid = log_pid(w, held, "main-0.0");
	assert_true(is_alive(pid));
	world_stop(w);
	assert_false(is_alive(pid));
	until(world_helpers(w, NULL) == 0);
	assert_int_equal(world_start(w), 0);
	assert_true(has_state(w, held, SPEC_CANCELLED));
}

/* Output was lost while no daemon was connected. The next mount reports that. */
static void test_crash_and_lost(void **state)
{
	struct world *w = *state;
	cleanup_job const struct spec_job *job = NULL;
	char id[64];
	pid_t daemon;

	world_stop(w);
	daemon = daemon_run(
		w,
		"echo up; while ! [ -e go ]; do sleep 0.02; done; head -c 200000 /dev/zero; "
		"while ! [ -e end ]; do sleep 0.02; done; exit 0",
		id);
	until(file_has(w, id, "logs/main-0.0", "up") && file_has(w, id, "logs/main-1.0", "up"));
	daemon_kill(daemon);
	touch(w, "go");
	touch(w, "end");
	until(exists(w, "state/output/%s/tasks/0.0", folder_key(w->state, id)) &&
	      exists(w, "state/output/%s/tasks/1.0", folder_key(w->state, id)));
	assert_int_equal(world_start(w), 0);
	until(has_state(w, id, SPEC_SUCCEEDED));
	job = job_of(w, id);
	assert_string_equal(job->replicas[0].reason, "OutputLost");
	assert_string_equal(job->reason, "OutputLost");
}

/*
 * Two things must survive a power loss: the record of a job, from before the job starts, and the
 * result of an attempt, from before it is reported.
 */
static void test_synced(void **state)
{
	struct world *w = *state;
	cleanup_free char *notes = text_print("%s/synced", w->work);
	cleanup_free char *jobs = text_print("%s/jobs\n", w->state);
	cleanup_free char *id = NULL, *text = NULL, *end = NULL;
	cleanup_free char *path = text_print("%s/at-start", w->work);
	size_t len;

	setenv(SYNCED, notes, 1);
	id = submit_sh(w, "cp synced at-start", 1, NULL);
	until(has_state(w, id, SPEC_SUCCEEDED));
	unsetenv(SYNCED);
	assert_int_equal(file_read(path, 1 << 20, &text, &len), 0);
	assert_non_null(strstr(text, jobs));
	assert_non_null(strstr(text, folder_key(w->state, id)));
	free(take_ptr(text));
	assert_int_equal(file_read(notes, 1 << 20, &text, &len), 0);
	end = text_print("%s/tasks/0.0.new\n", folder_key(w->state, id));
	assert_non_null(strstr(text, end));
}

static void test_crash_keeps_what_is_over(void **state)
{
	struct world *w = *state;
	cleanup_free char *done = submit_sh(w, "echo kept", 1, NULL);
	cleanup_free char *moved = submit_sh(w, "echo moved", 1, NULL);
	char id[64];
	pid_t daemon;

	until(has_state(w, done, SPEC_SUCCEEDED) && has_state(w, moved, SPEC_SUCCEEDED));
	assert_int_equal(cancel(w, moved), 0);
	world_stop(w);
	daemon = daemon_run(w, "exec sleep 1000", id);
	daemon_kill(daemon);
	assert_int_equal(world_start(w), 0);
	until(has_state(w, id, SPEC_RUNNING));
	assert_true(has_state(w, done, SPEC_SUCCEEDED));
	assert_true(is_in(w, BACKEND_JOBS, done));
	assert_true(is_in(w, BACKEND_HISTORY, moved));
	assert_true(log_is(w, done, "main-0.0", "kept\n"));
	assert_true(log_is(w, moved, NULL, "main/0 moved\n"));
}

static void test_stop(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w, "trap 'echo bye; exit 0' TERM; echo $$; while :; do sleep 0.02; done",
			  2, NULL);
	cleanup_free char *stopped = submit_sh(w, "echo $$; exec sleep 1000", 1, NULL);
	pid_t pids[] = {log_pid(w, id, "main-0.0"), log_pid(w, id, "main-1.0"),
			log_pid(w, stopped, "main-0.0")};
	cleanup_job const struct spec_job *job = NULL;

	assert_int_equal(control(w, stopped, SPEC_SUSPEND), 0);
	world_stop(w);
	for (size_t i = 0; i < array_size(pids); i++)
		assert_false(is_alive(pids[i]));
	assert_int_equal(world_start(w), 0);
	job = job_of(w, id);
	assert_int_equal(job->state, SPEC_CANCELLED);
	assert_string_equal(job->reason, "Unmounted");
	assert_false(job->history);
	assert_true(log_has(w, id, "main-1.0", "\nbye\n"));
	assert_true(log_has(w, id, NULL, "\nmain/1 bye\n"));
	assert_true(has_state(w, stopped, SPEC_CANCELLED));
	assert_false(has_phase(w, stopped, "Suspended"));
}

/* The job of a file is found, also after a restart, until the link is removed. */
static void test_file(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w, "true", 1, NULL);
	struct backend_file found;

	until(has_state(w, id, SPEC_SUCCEEDED));
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(backend_file(w->b, "app.yaml", &found), 0);
		assert_string_equal(found.id, id);
		assert_int_equal(found.place, BACKEND_JOBS);
		assert_true(backend_knows_digest(w->b, found.digest));
		free(found.id);
		world_stop(w);
		assert_int_equal(world_start(w), 0);
	}
	assert_int_equal(backend_file(w->b, "b.yaml", &found), -ENOENT);
	assert_int_equal(backend_unlink_file(w->b, "app.yaml"), 0);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(backend_file(w->b, "app.yaml", &found), -ENOENT);
		world_stop(w);
		assert_int_equal(world_start(w), 0);
	}
}

static void test_history_keep(void **state)
{
	struct world *w = *state;
	cleanup_free char *stays = NULL;
	cleanup_free char *goes = NULL;

	world_stop(w);
	w->config.history_keep = 1;
	assert_int_equal(world_start(w), 0);
	stays = submit_sh(w, "true", 1, NULL);
	goes = submit_sh(w, "true", 1, NULL);
	until(has_state(w, stays, SPEC_SUCCEEDED) && has_state(w, goes, SPEC_SUCCEEDED));
	assert_int_equal(cancel(w, goes), 0);
	clock_pass(w->loop, 2);
	until(!is_in(w, BACKEND_HISTORY, goes));
	assert_false(exists(w, "state/output/%s", folder_key(w->state, goes)));
	assert_true(is_in(w, BACKEND_JOBS, stays));
}

/*
 * If the output exceeds its limit, kxfs removes output of the history first, then that of finished
 * jobs, oldest first. It never removes the output of a running job.
 */
static void test_spool_limit(void **state)
{
	struct world *w = *state;
	cleanup_free char *old = NULL, *moved = NULL, *live = NULL, *late = NULL;
	static const char script[] = "head -c 1000000 /dev/zero";

	world_stop(w);
	w->config.spool_limit = 2800000;
	assert_int_equal(world_start(w), 0);
	live = submit_sh(w, "head -c 500000 /dev/zero; exec sleep 1000", 1, NULL);
	old = submit_sh(w, script, 1, NULL);
	until(has_state(w, old, SPEC_SUCCEEDED));
	moved = submit_sh(w, script, 1, NULL);
	until(has_state(w, moved, SPEC_SUCCEEDED));
	assert_int_equal(cancel(w, moved), 0);
	late = submit_sh(w, script, 1, NULL);
	until(has_state(w, late, SPEC_SUCCEEDED));
	clock_pass(w->loop, 2);
	until(!exists(w, "state/output/%s/logs", folder_key(w->state, moved)));
	assert_true(is_in(w, BACKEND_JOBS, old));
	{
		cleanup_free char *more = submit_sh(w, script, 1, NULL);

		until(has_state(w, more, SPEC_SUCCEEDED));
		clock_pass(w->loop, 2);
		until(!exists(w, "state/output/%s/logs", folder_key(w->state, old)));
		assert_true(is_in(w, BACKEND_JOBS, more));
	}
	assert_true(is_in(w, BACKEND_JOBS, live));
	assert_true(has_state(w, live, SPEC_RUNNING));
	/* The results of these jobs remain, and the next mount knows them. */
	for (int i = 0; i < 2; i++) {
		assert_true(has_state(w, old, SPEC_SUCCEEDED));
		assert_true(is_in(w, BACKEND_HISTORY, moved));
		world_stop(w);
		assert_int_equal(world_start(w), 0);
	}
}

/* A power loss interrupted the removal of output. The next mount removes the rest. */
static void test_half_removed(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w, "echo gone", 1, NULL), *logs = NULL;

	until(has_state(w, id, SPEC_SUCCEEDED) && log_is(w, id, NULL, "main/0 gone\n"));
	world_stop(w);
	logs = text_print("%s/output/%s/logs", w->state, folder_key(w->state, id));
	assert_int_equal(scratch_remove(logs), 0);
	assert_true(exists(w, "state/output/%s/merged", folder_key(w->state, id)));
	assert_int_equal(world_start(w), 0);
	until(!exists(w, "state/output/%s/merged", folder_key(w->state, id)));
	assert_true(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(log_is(w, id, NULL, ""));
}

#define world_test(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		world_test(test_crash),
		world_test(test_crash_and_ended),
		world_test(test_crash_and_ended_in_order),
		world_test(test_crash_and_killed),
		world_test(test_linger),
		world_test(test_crash_keeps_what_is_over),
		world_test(test_stop),
		world_test(test_crash_and_lost),
		world_test(test_synced),
		world_test(test_file),
		world_test(test_history_keep),
		world_test(test_spool_limit),
		world_test(test_half_removed),
	};

	backend_helper(argv);
	if (argc == 4 && streq(argv[1], "--daemon"))
		return daemon_main(argv[2], argv[3]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
