/* SPDX-License-Identifier: MIT */
/*
 * The logs contain exactly what local jobs print: when a program reopens its output, prints at the
 * last moment, leaves a process that keeps the output open, or when the disk is full. Also the
 * helper, which writes the output: which signals it gets, what it inherits, and that no helper is
 * left.
 */
#include "tests/unit/backend/local/local-world.h"

#include <sys/resource.h>

#include "backend/output/lines.h"

/* True if the daemon's messages contain PART. */
static bool said(const char *part)
{
	size_t len;
	cleanup_free char *text = diag_text(&len);

	return strstr(text, part) != NULL;
}

static uint64_t log_size(struct world *w, const char *id)
{
	cleanup_job const struct spec_job *job = job_of(w, id);
	struct log_stat st;

	assert_int_equal(backend_log_stat(w->b, job, "main-0.0", LOG_PLAIN, &st), 0);
	return st.size;
}

/* Wait until a file below WORK contains a whole number, and return it. */
static pid_t file_pid(struct world *w, const char *name)
{
	cleanup_file FILE *f = NULL;
	char path[128], text[32] = "";

	until(exists(w, "work/%s", name));
	snprintf(path, sizeof(path), "%s/%s", w->work, name);
	f = fopen(path, "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof(text), f));
	assert_true(atol(text) > 1);
	return (pid_t)atol(text);
}

/* --- complete output --- */

/*
 * "> /dev/stderr" opens the descriptor's file again. If it were a regular file, the log would be
 * truncated.
 */
static void test_opened_anew(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(
		w,
		"i=0; while [ $i -lt 300 ]; do echo a$i > /dev/stderr; echo b$i > /dev/stdout; "
		"echo c$i >> /dev/stderr; echo d$i; i=$((i + 1)); done; printf end > /dev/stdout",
		1, NULL);
	cleanup_free char *expected = NULL;
	size_t len;
	FILE *out = open_memstream(&expected, &len);

	for (int i = 0; i < 300; i++)
		fprintf(out, "a%d\nb%d\nc%d\nd%d\n", i, i, i, i);
	fputs("end", out);
	fclose(out);
	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(log_is(w, id, "main-0.0", expected));
}

static void test_much(void **state)
{
	enum { N = 50000000 };
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w, "seq 10000000 99999999 | head -c 50000000", 1, NULL);
	cleanup_free char *text = NULL;
	char line[16];

	until(has_state(w, id, SPEC_SUCCEEDED));
	text = log_text(w, id, "main-0.0");
	assert_int_equal(strlen(text), N);
	for (int at = 0; at < N; at += 9) {
		snprintf(line, sizeof(line), "%d\n", 10000000 + at / 9);
		if (strncmp(text + at, line, (size_t)min_of(9, N - at)) != 0)
			fail_msg("wrong at byte %d", at);
	}
}

/* After SIGTERM, a program prints more than a pipe can buffer. */
static void test_last_words(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w,
					  "exec 2>/dev/null; trap 'head -c 1000000 /dev/zero; "
					  "echo last > /dev/stdout; exit 0' TERM; "
					  "echo up; while :; do sleep 0.02; done",
					  1, NULL);

	until(log_has(w, id, "main-0.0", "up\n"));
	assert_int_equal(cancel(w, id), 0);
	until(has_phase(w, id, "Cancelled"));
	assert_int_equal(log_size(w, id), 3 + 1000000 + 5);
}

/* A program that closes its output and continues loses no output. */
static void test_closed(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w, "echo said; exec >&- 2>&-; while ! [ -e go ]; do sleep 0.02; done", 1,
			  NULL);
	cleanup_job const struct spec_job *job = NULL;

	until(has_state(w, id, SPEC_RUNNING));
	until(log_has(w, id, "main-0.0", "said\n"));
	pause_ms(100);
	assert_int_equal(world_helpers(w, NULL), 1);
	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	job = job_of(w, id);
	assert_string_equal(job->reason, "Completed");
	assert_true(log_is(w, id, "main-0.0", "said\n"));
}

/* --- another process has the output open --- */

/*
 * Open the output of process PID in this test, which does not belong to the job. That works once
 * the program has printed a line.
 */
static int hold_output(pid_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/fd/1", (int)pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

/*
 * A process outside the job keeps the output open. The end of the attempt waits for it, but only
 * for a limited time.
 */
static void test_held(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w, "echo $$; while ! [ -e go ]; do sleep 0.02; done; echo done", 1, NULL);
	pid_t pid = log_pid(w, id, "main-0.0");
	cleanup_fd int fd = hold_output(pid);
	char expected[64];

	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	snprintf(expected, sizeof(expected), "%d\ndone\n", (int)pid);
	assert_true(log_is(w, id, "main-0.0", expected));
	assert_true(said("main-0: the program has ended, but a process"));
	until(world_helpers(w, NULL) == 0);
	signal(SIGPIPE, SIG_IGN);
	assert_true(write(fd, "late\n", 5) < 0 && errno == EPIPE);
}

/*
 * A process outside the job keeps the output open, and prints without pause. A new attempt starts
 * all the same.
 */
static void test_held_and_loud(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w,
					  "[ -e go ] && { echo again; exit 0; }; echo $$; "
					  "while ! [ -e go ]; do sleep 0.02; done; exit 1",
					  1, "    max_retries: 1\n");
	pid_t pid = log_pid(w, id, "main-0.0");
	char path[64];
	pid_t loud;
	int status;

	snprintf(path, sizeof(path), "/proc/%d/fd/1", (int)pid);
	loud = fork();
	if (loud == 0) {
		int fd = open(path, O_WRONLY | O_CLOEXEC);

		signal(SIGPIPE, SIG_DFL);
		while (fd >= 0 && write(fd, "loud\n", 5) > 0)
			;
		_exit(1);
	}
	until(log_has(w, id, "main-0.0", "loud\n"));
	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_int_equal(waitpid(loud, &status, 0), loud);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGPIPE);
	assert_true(log_is(w, id, "main-0.1", "again\n"));
}

/* --- the disk is full --- */

enum { ROOM = 1000000 };

/*
 * Submit a job whose logs can grow to ROOM bytes, as on a full disk. Running jobs have no such
 * limit.
 */
static char *submit_full(struct world *w, const char *script)
{
	struct rlimit room, was;
	char *id;

	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &was);
	room = was;
	room.rlim_cur = ROOM;
	setrlimit(RLIMIT_FSIZE, &room);
	id = submit_sh(w, script, 1, NULL);
	until(!has_state(w, id, SPEC_PENDING));
	setrlimit(RLIMIT_FSIZE, &was);
	return id;
}

static void test_full(void **state)
{
	static const char text[] = "its output can't be written: File too large";
	struct world *w = *state;
	cleanup_free char *id = submit_full(w, "exec yes");
	cleanup_job const struct spec_job *job = NULL;

	until(has_state(w, id, SPEC_FAILED));
	job = job_of(w, id);
	assert_int_equal(job->replicas[0].signal, SIGPIPE);
	assert_string_equal(job->replicas[0].reason, "OutputLost");
	assert_non_null(strstr(job->replicas[0].message, "killed by signal 13 (SIGPIPE); its out"));
	assert_non_null(strstr(job->replicas[0].message, text));
	assert_string_equal(job->reason, "OutputLost");
	assert_non_null(strstr(job->message, "main-0: killed by signal 13"));
	assert_non_null(strstr(job->message, text));
	assert_true(said(text));
	assert_int_equal(log_size(w, id), ROOM);
}

/*
 * A program does not notice that the disk is full. It succeeds, but a message reports the lost
 * output.
 */
static void test_full_and_succeeded(void **state)
{
	static const char text[] = "its output can't be written: File too large";
	struct world *w = *state;
	cleanup_free char *id = submit_full(w, "yes; while ! [ -e go ]; do sleep 0.02; done; true");
	cleanup_job const struct spec_job *job = NULL;
	bool shown = false;

	until(log_size(w, id) == ROOM);
	while (!shown) {
		cleanup_job const struct spec_job *now = job_of(w, id);

		shown = now->replicas[0].state == SPEC_RUNNING &&
			streq(now->replicas[0].reason, "OutputLost") &&
			streq(now->replicas[0].message, text);
		assert_true(now->state == SPEC_RUNNING);
		pause_ms(2);
	}
	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	job = job_of(w, id);
	assert_string_equal(job->replicas[0].reason, "OutputLost");
	assert_string_equal(job->replicas[0].message, text);
	assert_string_equal(job->reason, "OutputLost");
	assert_non_null(strstr(job->message, text));
}

/* --- the helper --- */

/*
 * Signals to the daemon do not reach the helper. The helper keeps no descriptors of the job or the
 * daemon open.
 */
static void test_helper(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGUSR1, SIGUSR2};
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w, "echo $$; while ! [ -e go ]; do sleep 0.02; done; echo down", 1, NULL);
	pid_t program = log_pid(w, id, "main-0.0"), guard = parent_of(program), pid = 0;
	char expected[64];

	assert_int_equal(world_helpers(w, &pid), 1);
	assert_true(pid > 1 && guard > 1);
	assert_int_equal(parent_of(guard), pid);
	assert_int_equal(getsid(pid), pid);
	assert_int_not_equal(getsid(program), getsid(pid));
	for (size_t i = 0; i < array_size(signals); i++) {
		kill(pid, signals[i]);
		kill(guard, signals[i]);
	}
	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	snprintf(expected, sizeof(expected), "%d\ndown\n", (int)program);
	assert_true(log_is(w, id, "main-0.0", expected));
	until(world_helpers(w, NULL) == 0);
	assert_false(is_alive(guard));
}

/*
 * The program kills its parent, which is the helper, or somebody else kills the helper. The attempt
 * ends with all its processes, and its result shows the reason.
 */
static void test_killed(void **state)
{
	static const char script[] =
		"env -i setsid sh -c 'echo $$ > .pid; mv .pid pid; exec sleep 1000' & "
		"while ! [ -e pid ]; do sleep 0.02; done; echo up; "
		"while ! [ -e kill ]; do sleep 0.02; done; kill -9 $PPID; exec sleep 1000";
	struct world *w = *state;

	for (int i = 0; i < 2; i++) {
		cleanup_free char *id = submit_sh(w, script, 1, NULL);
		cleanup_job const struct spec_job *job = NULL;
		pid_t daemon, helper = 0;
		char path[128];

		until(log_has(w, id, "main-0.0", "up\n"));
		daemon = file_pid(w, "pid");
		assert_true(is_alive(daemon));
		assert_int_equal(world_helpers(w, &helper), 1);
		if (i == 0)
			touch(w, "kill");
		else
			kill(helper, SIGKILL);
		until(has_state(w, id, SPEC_FAILED));
		job = job_of(w, id);
		assert_string_equal(job->reason, "HelperKilled");
		assert_non_null(strstr(job->message,
				       i == 0 ? "was killed by signal 9 (SIGKILL)" : "was killed"));
		assert_true(log_is(w, id, "main-0.0", "up\n"));
		until(!is_alive(daemon));
		until(world_helpers(w, NULL) == 0);
		snprintf(path, sizeof(path), "%s/pid", w->work);
		unlink(path);
		snprintf(path, sizeof(path), "%s/kill", w->work);
		unlink(path);
	}
}

/* If its helper was killed, an attempt is retried according to the retry policy of its role. */
static void test_killed_and_retried(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w,
			  "[ -e once ] || { touch once; kill -9 $PPID; sleep 1000; }; echo again",
			  1, "    max_retries: 1\n");

	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(log_is(w, id, "main-0.1", "again\n"));
}

/* The times of the lines are stored beside the log. */
static void test_lines(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w, "echo a; while ! [ -e go ]; do sleep 0.02; done; echo b", 1, NULL);
	cleanup_free char *path = NULL;
	struct lines_record first, second;
	struct lines_reader reader;
	cleanup_fd int fd = -1;

	until(log_has(w, id, "main-0.0", "a\n"));
	pause_ms(300);
	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(asprintf(&path, "%s/output/%s/lines/main-0.0", w->state,
			     folder_key(w->state, id)) > 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	lines_open(&reader, fd);
	assert_int_equal(lines_find(&reader, 0, 0, &first), 0);
	assert_int_equal(lines_next(&reader, &second), 0);
	assert_int_equal(first.line.at, 0);
	assert_int_equal(second.line.at, 2);
	assert_true(second.line.ns - first.line.ns >= 250 * INT64_C(1000000));
	assert_true(loop_time_ns() - second.line.ns < 600 * INT64_C(1000000000));
}

/* No helper is left when the backend has stopped. */
static void test_none_left(void **state)
{
	struct world *w = *state;
	siginfo_t info;

	free(submit_sh(w, "echo up; exec sleep 1000", 20, NULL));
	until(world_helpers(w, NULL) == 20);
	world_stop(w);
	assert_int_equal(world_helpers(w, NULL), 0);
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
	assert_int_equal(errno, ECHILD);
}

#define world_test(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		world_test(test_opened_anew), world_test(test_much),
		world_test(test_last_words),  world_test(test_closed),
		world_test(test_held),	      world_test(test_held_and_loud),
		world_test(test_full),	      world_test(test_full_and_succeeded),
		world_test(test_helper),      world_test(test_killed),
		world_test(test_lines),	      world_test(test_killed_and_retried),
		world_test(test_none_left),
	};

	backend_helper(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
