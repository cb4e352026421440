/* SPDX-License-Identifier: MIT */
/*
 * What local jobs print is in their logs, to the byte: when a program opens its own output anew,
 * prints at the last moment, leaves somebody behind who holds the output open, or the disk is full.
 * And what brings it there: what it may be sent, what it inherits, that none is left.
 */
#include "local-world.h"

#include <sys/resource.h>

/* Is PART in the daemon's own messages? */
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

	assert_int_equal(backend_log_stat(w->b, job, "main-0.0", &st), 0);
	return st.size;
}

/* The number in a file below WORK, once it is whole. */
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

/* --- to the byte --- */

/* "> /dev/stderr" opens what is behind the descriptor anew, and a file would be truncated. */
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

/* More than a pipe holds, printed after SIGTERM. */
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

/* Who closes its output and goes on is no case of lost output. */
static void test_closed(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w, "echo said; exec >&- 2>&-; while ! [ -e go ]; do sleep 0.02; done", 1,
			  NULL);
	cleanup_job const struct spec_job *job = NULL;

	until(has_state(w, id, SPEC_RUNNING));
	until(world_relays(w, NULL) == 0);
	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	job = job_of(w, id);
	assert_string_equal(job->reason, "Completed");
	assert_true(log_is(w, id, "main-0.0", "said\n"));
}

/* --- somebody else has it open --- */

/* A process that neither its session, its group nor its environment shows to be the job's. */
static void test_escaped(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w,
					  "env -i setsid sh -c 'echo $$ > .pid; mv .pid pid; while "
					  "[ -e pid ]; do sleep 0.1; done' & "
					  "while ! [ -e pid ]; do sleep 0.02; done; echo done",
					  1, NULL);
	pid_t pid = file_pid(w, "pid");

	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(is_alive(pid)); /* it ends when its directory is gone */
	assert_true(log_is(w, id, "main-0.0", "done\n"));
	assert_true(said("main-0: its output is still open"));
	assert_int_equal(world_relays(w, NULL), 0);
}

/* The same, and it prints without pause. A new attempt begins all the same. */
static void test_escaped_and_loud(void **state)
{
	struct world *w = *state;
	cleanup_free char *id = submit_sh(w,
					  "[ -e pid ] && { echo again; exit 0; }; "
					  "env -i setsid sh -c 'echo $$ > .pid; mv .pid pid; while "
					  "[ -e pid ]; do echo loud; done' & "
					  "while ! [ -e pid ]; do sleep 0.02; done; exit 1",
					  1, "    max_retries: 1\n");
	pid_t pid = file_pid(w, "pid");
	uint64_t size;

	until(has_state(w, id, SPEC_SUCCEEDED));
	until(!is_alive(pid)); /* by SIGPIPE */
	assert_true(log_is(w, id, "main-0.1", "again\n"));
	size = log_size(w, id);
	assert_true(size > 0 && size % 5 == 0);
}

/* --- the disk is full --- */

enum { ROOM = 1000000 };

/* As on a full disk, a log takes ROOM bytes; what runs already does not notice. */
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
	assert_non_null(strstr(job->replicas[0].message, "ended by signal 13 (SIGPIPE); its out"));
	assert_non_null(strstr(job->replicas[0].message, text));
	assert_string_equal(job->reason, "OutputLost");
	assert_non_null(strstr(job->message, "main-0: ended by signal 13"));
	assert_non_null(strstr(job->message, text));
	assert_true(said(text));
	assert_int_equal(log_size(w, id), ROOM);
}

/* A program that does not mind: it has succeeded, but not in silence. */
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

/* --- the process in between --- */

/* It hears nobody who means the daemon, and nothing of the job's or the daemon's holds it. */
static void test_relay(void **state)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE};
	struct world *w = *state;
	cleanup_free char *id = NULL;
	char path[64], text[4096];
	cleanup_fd int fd = -1;
	pid_t pid = 0;
	ssize_t n;

	setenv("KXFS_JOB", "another", 1);
	id = submit_sh(w, "echo up; while ! [ -e go ]; do sleep 0.02; done; echo down", 1, NULL);
	unsetenv("KXFS_JOB");
	until(log_has(w, id, "main-0.0", "up\n"));
	assert_int_equal(world_relays(w, &pid), 1);
	assert_true(pid > 1);
	assert_int_equal(getsid(pid), pid);
	snprintf(path, sizeof(path), "/proc/%d/cwd", (int)pid);
	n = readlink(path, text, sizeof(text));
	assert_true(n == 1 && text[0] == '/');
	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = read(fd, text, sizeof(text));
	assert_true(n > 0);
	assert_null(memmem(text, (size_t)n, "KXFS_STATE=", 11));
	assert_null(memmem(text, (size_t)n, "KXFS_JOB=", 9));
	assert_null(memmem(text, (size_t)n, "KXFS_REPLICA=", 13));
	for (size_t i = 0; i < array_size(signals); i++)
		kill(pid, signals[i]);
	touch(w, "go");
	until(has_state(w, id, SPEC_SUCCEEDED));
	assert_true(log_is(w, id, "main-0.0", "up\ndown\n"));
	assert_int_equal(world_relays(w, NULL), 0);
}

/* Killed by somebody: that is told while the job runs, and stays with it. */
static void test_relay_killed(void **state)
{
	struct world *w = *state;
	cleanup_free char *id =
		submit_sh(w, "echo up; while ! [ -e go ]; do sleep 0.02; done; exec echo down", 1,
			  NULL);
	cleanup_job const struct spec_job *job = NULL;
	pid_t pid;

	until(log_has(w, id, "main-0.0", "up\n"));
	assert_int_equal(world_relays(w, &pid), 1);
	kill(pid, SIGKILL);
	until(said("main-0: its output is cut: the process that keeps it was ended by signal 9"));
	touch(w, "go");
	until(has_state(w, id, SPEC_FAILED));
	job = job_of(w, id);
	assert_string_equal(job->reason, "OutputLost");
	assert_non_null(strstr(job->message, "was ended by signal 9 (SIGKILL)"));
}

/* None is left when the backend has stopped. */
static void test_none_left(void **state)
{
	struct world *w = *state;
	siginfo_t info;

	free(submit_sh(w, "echo up; exec sleep 1000", 20, NULL));
	until(world_relays(w, NULL) == 20);
	w->config.grace_ms = 5000;
	world_stop(w);
	assert_int_equal(world_relays(w, NULL), 0);
	assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT), -1);
	assert_int_equal(errno, ECHILD);
}

#define world_test(fn) cmocka_unit_test_setup_teardown(fn, world_setup, world_teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		world_test(test_opened_anew), world_test(test_much),
		world_test(test_last_words),  world_test(test_closed),
		world_test(test_escaped),     world_test(test_escaped_and_loud),
		world_test(test_full),	      world_test(test_full_and_succeeded),
		world_test(test_relay),	      world_test(test_relay_killed),
		world_test(test_none_left),
	};

	(void)argc;
	backend_helper(argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
