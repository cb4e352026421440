/* SPDX-License-Identifier: MIT */
/* The paragraph of `why`: what it tells the owner for each kind of trouble. */
#include <errno.h>

#include "spec/job/status.h"
#include "tests/unit/unit.h"

static void set(char **field, const char *value)
{
	spec_set(field, value);
}

/* Return a job with three replicas in STATE, none of which has a reason. */
static struct spec_job *job_in(enum spec_state state, const char *phase)
{
	static const char *const names[] = {"trainer-0", "trainer-1", "reader-0"};
	struct spec_job *job = spec_job_new(2, array_size(names));

	assert_non_null(job);
	job->state = state;
	set(&job->phase, phase);
	set(&job->roles[0].name, "trainer");
	set(&job->roles[1].name, "reader");
	for (size_t i = 0; i < array_size(names); i++) {
		set(&job->replicas[i].name, names[i]);
		job->replicas[i].role = i / 2;
		job->replicas[i].state = state;
		job->replicas[i].started = 1;
	}
	return job;
}

static struct spec_replica *failed(struct spec_job *job, size_t i, int64_t finished, int exit_code,
				   int signal)
{
	struct spec_replica *r = &job->replicas[i];

	r->state = SPEC_FAILED;
	r->finished = finished;
	r->exit_code = exit_code;
	r->signal = signal;
	set(&r->reason, signal ? "Signal" : "Error");
	set(&r->message, "what the backend says");
	return r;
}

static void assert_why(const struct spec_job *job, const char *want)
{
	cleanup_free char *text = NULL;
	size_t len;

	spec_status_why(job, ~0u, &text, &len);
	assert_int_equal(len, strlen(text));
	assert_string_equal(text, want);
}

static void test_nothing_to_say(void **state)
{
	static const enum spec_state states[] = {SPEC_SUBMITTED, SPEC_PENDING, SPEC_RUNNING,
						 SPEC_SUCCEEDED, SPEC_UNKNOWN};

	for (size_t i = 0; i < array_size(states); i++) {
		cleanup_job struct spec_job *job = job_in(states[i], "Some");

		assert_why(job, "");
	}
}

/* The last lines of the log are below the paragraph, each line indented. */
static void test_last_words(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_RUNNING, "Failed");

	job->state = SPEC_FAILED;
	failed(job, 0, 300, 3, 0);
	spec_set(&job->last_words, "one\n  two");
	assert_why(job, "trainer-0 ended with exit code 3. There was no retry, because max_retries "
			"is 0. Its output is in trainer-0/log. Its last output:\n    one\n      "
			"two\n");
	job->state = SPEC_RUNNING;
	assert_why(
		job,
		"trainer-0 ended with exit code 3. There was no retry, because max_retries is 0.\n");
}

/* `why` does not deny retries that were not counted. */
static void test_uncounted_retries(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");
	struct spec_replica *r = failed(job, 0, 300, 3, 0);

	job->replicas[1].state = job->replicas[2].state = SPEC_CANCELLED;
	r->attempt = 1;
	assert_why(job, "trainer-0 ended with exit code 3. Its output is in trainer-0/log.\n");
	r->attempt = 0;
	job->uncounted = true;
	job->max_retries = 1;
	assert_why(job, "trainer-0 ended with exit code 3. Its output is in trainer-0/log.\n");
}

/* The failed replica does not matter if the job has an exact reason. */
static void test_exact(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");

	failed(job, 0, 300, 3, 0);
	spec_set(&job->reason, "DeadlineExceeded");
	spec_set(&job->message, "too late");
	job->exact = true;
	assert_why(job, "The job failed: too late.\n");
}

/*
 * If a replica is known to have printed nothing, kxfs does not look for its last lines. Lost output
 * is a different case.
 */
static void test_silent(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");
	struct spec_replica *r = failed(job, 0, 300, 3, 0);

	job->replicas[1].state = job->replicas[2].state = SPEC_CANCELLED;
	job->silent = true;
	assert_why(job, "trainer-0 ended with exit code 3. There was no retry, because max_retries "
			"is 0. The replica has printed nothing.\n");
	set(&r->blamed, "init");
	assert_why(job, "trainer-0 ended with exit code 3. There was no retry, because max_retries "
			"is 0. The container has printed nothing.\n");
	set(&r->blamed, "");
	set(&r->reason, "OutputLost");
	set(&r->message, "No space left on device");
	assert_why(job, "trainer-0 failed: No space left on device. There was no retry, because "
			"max_retries is 0. Its output is in trainer-0/log.\n");
}

/*
 * `why` names the replica that failed first. It does not name the first one in the list, or one
 * that was ended because of the failure.
 */
static void test_first_failure(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");

	failed(job, 0, 300, -1, 15);
	failed(job, 1, 200, 3, 0);
	job->replicas[2].state = SPEC_CANCELLED;
	job->replicas[2].finished = 100;
	assert_why(job, "trainer-1 ended with exit code 3. It was the first of 2 "
			"failed replicas. There was no retry, because max_retries "
			"is 0. Its output is in trainer-1/log.\n");
}

static void test_signal_and_retries(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");

	job->replicas[0].state = job->replicas[1].state = SPEC_CANCELLED;
	failed(job, 2, 5, -1, 11);
	job->retries = 2;
	job->max_retries = 2;
	assert_why(job, "reader-0 was killed by signal 11 (SIGSEGV). Retries used: 2; max_retries "
			"is 2. Its output is in reader-0/log.\n");
	job->replicas[2].signal = 9;
	assert_why(job, "reader-0 was killed by signal 9 (SIGKILL), which the kernel also sends "
			"when memory runs out. Retries used: 2; max_retries is 2. Its output is "
			"in reader-0/log.\n");
	job->replicas[2].signal = 40;
	assert_why(job, "reader-0 was killed by signal 40. Retries used: 2; max_retries is 2. Its "
			"output is in reader-0/log.\n");
}

static void test_time_limit(void **state)
{
	static const struct {
		int64_t limit;
		const char *said;
	} table[] = {
		{14400, " of 4h"}, {5400, " of 90m"}, {172800, " of 2d"}, {61, " of 61s"}, {0, ""}};
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");
	char want[256];

	job->replicas[1].state = job->replicas[2].state = SPEC_CANCELLED;
	set(&failed(job, 0, 5, -1, 15)->reason, "DeadlineExceeded");
	for (size_t i = 0; i < array_size(table); i++) {
		job->time_limit = table[i].limit;
		snprintf(want, sizeof(want),
			 "trainer-0 ran longer than its time limit%s. There was no retry, because "
			 "max_retries is 0. Its output is in trainer-0/log.\n",
			 table[i].said);
		assert_why(job, want);
	}
}

static void test_exit_code_hints(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");

	job->replicas[1].state = job->replicas[2].state = SPEC_CANCELLED;
	failed(job, 0, 5, 127, 0);
	assert_why(job, "trainer-0 ended with exit code 127 (in a shell: a command was not found). "
			"There was no retry, because max_retries is 0. Its output is in "
			"trainer-0/log.\n");
	job->replicas[0].exit_code = 126;
	assert_why(job, "trainer-0 ended with exit code 126 (in a shell: a command can't be "
			"executed). There was no retry, because max_retries is 0. Its output is in "
			"trainer-0/log.\n");
}

static void test_start_error(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");
	struct spec_replica *r = failed(job, 1, 5, 128, 0);

	job->replicas[0].state = job->replicas[2].state = SPEC_CANCELLED;
	r->started = 0;
	set(&r->reason, "StartError");
	set(&r->message, "exec: \"pyton3\": not found in PATH");
	assert_why(job, "trainer-1 could not be started: exec: \"pyton3\": not found in PATH. "
			"Check the entrypoint of role trainer: it must be a program in PATH or the "
			"path of an executable file. There was no retry, because max_retries is "
			"0.\n");
	set(&r->message, "exec: \"python train.py\": not found in PATH");
	assert_why(job,
		   "trainer-1 could not be started: exec: \"python train.py\": not found in PATH. "
		   "Check the entrypoint of role trainer: it must be only a program, and the "
		   "program's arguments belong in args. There was no retry, because max_retries "
		   "is 0.\n");
	set(&r->message, "exec: \"sh\": Argument list too long");
	assert_why(job, "trainer-1 could not be started: exec: \"sh\": Argument list too long. The "
			"args and env of role trainer are longer than the system allows: put long "
			"values into a file. There was no retry, because max_retries is 0.\n");
	set(&r->message, "working directory \"/x\": No such file or directory");
	assert_why(job, "trainer-1 could not be started: working directory \"/x\": No such file or "
			"directory. There was no retry, because max_retries is 0.\n");
	set(&r->message, "its output can't be stored: No space left on device");
	assert_why(job, "trainer-1 could not be started: its output can't be stored: No space "
			"left on device. The program did not cause this: fix the problem, then "
			"submit the file again. There was no retry, because max_retries is 0.\n");
}

/* The replica's output was lost. That is the reason, whatever the program did about it. */
static void test_output_lost(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");
	struct spec_replica *r = failed(job, 1, 5, -1, 13);

	job->replicas[0].state = job->replicas[2].state = SPEC_CANCELLED;
	set(&r->reason, "OutputLost");
	set(&r->message,
	    "killed by signal 13 (SIGPIPE); its output can't be written: No space left on device");
	assert_why(job, "trainer-1 failed: killed by signal 13 (SIGPIPE); its output can't be "
			"written: No space left on device. There was no retry, because max_retries "
			"is 0. Its output is in trainer-1/log.\n");
	job->state = SPEC_SUCCEEDED;
	assert_why(job, "");
	set(&job->reason, "OutputLost");
	set(&job->message, "trainer-1: its output can't be written: No space left on device");
	assert_why(job, "trainer-1: its output can't be written: No space left on device.\n");
}

/* The job's own message explains what happened to the whole job. */
static void test_job_says_it(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");

	set(&job->message, "kxfs ended without stopping the job");
	set(&job->replicas[0].reason, "KxfsRestarted");
	assert_why(job, "The job failed: kxfs ended without stopping the job.\n");
	set(&job->phase, "Terminated");
	set(&job->message, "terminated through ctl");
	failed(job, 0, 1, -1, 15);
	assert_why(job, "The job was ended: terminated through ctl.\n");
}

static void test_cancelled(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_CANCELLED, "Cancelled");

	assert_why(job, "The job was cancelled.\n");
	set(&job->message, "its directory was removed");
	assert_why(job, "The job was cancelled: its directory was removed.\n");
	job->suspended = true;
	/* If ctl can't resume the job, the text does not advise it. */
	assert_why(job, "The job is suspended.\n");
	job->actions = 1u << SPEC_RESUME;
	assert_why(
		job,
		"The job is suspended. To resume the job, write \"resume\" to its file ctl; to end the job, "
		"remove its directory.\n");
	job->actions |= 1u << SPEC_TERMINATE;
	assert_why(
		job,
		"The job is suspended. To resume the job, write \"resume\" to its file ctl; to end "
		"the job, write \"terminate\" there or remove its directory.\n");
}

static void test_waiting(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_RUNNING, "Running");
	struct spec_replica *r = failed(job, 1, 0, 1, 0);

	r->state = SPEC_PENDING;
	job->retries = 1;
	job->max_retries = 3;
	/* A replica that is only restarted along with others is not the cause. */
	job->replicas[0].state = SPEC_PENDING;
	set(&job->replicas[0].reason, "Restarting");
	set(&job->replicas[0].message, "killed by signal TERM");
	assert_why(job, "trainer-1 ended with exit code 1. It will be restarted soon. "
			"Retries used: 1; max_retries is 3.\n");
	/*
	 * The replica is started again although its owner requested no retries. So the text must
	 * not deny a restart.
	 */
	job->retries = job->max_retries = 0;
	assert_why(job, "trainer-1 ended with exit code 1. It will be restarted soon.\n");
	set(&r->reason, "StartDelayed");
	set(&r->message, "Resource temporarily unavailable");
	assert_why(job, "trainer-1 can't be started yet (kxfs retries): Resource "
			"temporarily unavailable.\n");
}

/* What a cluster reports about a pod that can't start. */
static void test_cluster_waiting(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_PENDING, "Pending");
	struct spec_replica *r = &job->replicas[1];

	set(&job->message, "trainer-1: no such host");
	set(&r->reason, "ImagePullBackOff");
	set(&r->message, "no such host");
	assert_why(job, "trainer-1 can't start: its image can't be pulled: no such host. Check "
			"the image's name and tag, and that the cluster's nodes may pull it.\n");
	set(&r->reason, "Unschedulable");
	set(&r->message, "0/1 nodes are available");
	assert_why(job, "trainer-1 fits on no node: 0/1 nodes are available.\n");
}

/*
 * A replica may have been killed for its memory. If its highest sample was large, the text shows
 * it.
 */
static void test_memory(void **state)
{
	static const struct spec_request given = {-1, -1, INT64_C(17179869184), -1};
	static const struct {
		const char *reason;
		int exit_code, signal;
		int64_t peak;
		const char *blamed, *why;
	} table[] = {
		{"OOMKilled", 137, 0, INT64_C(16965120819), "",
		 "trainer-0 was killed because it used more memory than its limit "
		 "of 16 GiB. Role trainer must request more memory, or use less. "
		 "kxfs measured up to 15.8 GiB of memory."},
		{"OOMKilled", 137, 0, -1, "",
		 "trainer-0 was killed because it used more memory than its limit of 16 GiB. Role "
		 "trainer must request more memory, or use less."},
		{"OOMKilled", 137, 0, INT64_C(16965120819), "side",
		 "trainer-0 was killed because it used more memory than its limit. Role trainer "
		 "must request more memory, or use less."},
		{"Signal", -1, 9, INT64_C(67108864), "",
		 "trainer-0 was killed by signal 9 (SIGKILL), which the kernel "
		 "also sends when memory runs out. kxfs measured up to 64 MiB of "
		 "memory."},
		{"Signal", -1, 9, INT64_C(67108863), "",
		 "trainer-0 was killed by signal 9 (SIGKILL), which the kernel also sends when memory "
		 "runs out."},
		{"Signal", -1, 15, INT64_C(67108864), "",
		 "trainer-0 was killed by signal 15 (SIGTERM)."},
		{"Error", 137, 0, INT64_C(1073741824), "",
		 "trainer-0 ended with exit code 137, which means signal 9 "
		 "(SIGKILL), which the kernel also sends when memory runs out. "
		 "kxfs measured up to 1 GiB of memory."},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");
		struct spec_replica *r = failed(job, 0, 1, table[i].exit_code, table[i].signal);
		const struct spec_usage used = {.memory_peak = table[i].peak};
		char want[512];

		job->replicas[1].state = job->replicas[2].state = SPEC_CANCELLED;
		set(&r->reason, table[i].reason);
		set(&r->blamed, table[i].blamed);
		spec_role_set_request(&job->roles[r->role], &given);
		spec_replica_set_usage(r, &used);
		snprintf(want, sizeof(want), "%s There was no retry, because max_retries is 0. %s",
			 table[i].why,
			 *table[i].blamed
				 ? "The output of that container is in trainer-0/side.log.\n"
				 : "Its output is in trainer-0/log.\n");
		assert_why(job, want);
	}
}

static void test_cluster_failed(void **state)
{
	static const struct {
		const char *reason, *message;
		int exit_code;
		const char *why;
	} table[] = {
		{"OOMKilled", "exit code 137", 137,
		 "trainer-0 was killed because it used more memory than its limit. Role trainer "
		 "must request more memory, or use less."},
		{"Evicted", "The node was low on resource: memory", 137,
		 "trainer-0 failed (Evicted): The node was low on resource: memory."},
		{"Error", "container side: exit code 1", 0,
		 "trainer-0 failed: container side: exit code 1."},
		{"Error", "exit code 3", 3, "trainer-0 ended with exit code 3."},
	};

	for (size_t i = 0; i < array_size(table); i++) {
		cleanup_job struct spec_job *job = job_in(SPEC_FAILED, "Failed");
		struct spec_replica *r = failed(job, 0, 1, table[i].exit_code, 0);
		char want[512];

		job->replicas[1].state = job->replicas[2].state = SPEC_CANCELLED;
		job->max_retries = 1;
		set(&r->reason, table[i].reason);
		set(&r->message, table[i].message);
		snprintf(want, sizeof(want),
			 "%s Retries used: 0; max_retries is 1. Its output is in trainer-0/log.\n",
			 table[i].why);
		assert_why(job, want);
	}
}

static void test_one_line(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_PENDING, "Pending");
	char text[2000], want[2000];

	set(&job->message, "two\nlines,\tand \x1b[31mred!");
	assert_why(job, "two lines, and  [31mred!\n");

	/* A long message is truncated between characters. */
	memset(text, 'x', sizeof(text));
	memcpy(text + 499, "\u00e9", 2);
	text[1000] = '\0';
	set(&job->message, text);
	snprintf(want, sizeof(want), "%.501s ...\n", text);
	assert_why(job, want);
}

/* If the disk refuses something, the text reports that at the end, for a job in any state. */
static void test_disk_refuses(void **state)
{
#define REFUSED                                                                                    \
	" can't be written to the state directory: No space left on "                              \
	"device. kxfs retries automatically, but output that the "                                 \
	"cluster removes meanwhile is lost.\n"
	cleanup_job struct spec_job *job = job_in(SPEC_RUNNING, "Running");

	for (size_t i = 1; i < 3; i++) {
		struct spec_replica *r = &job->replicas[i];

		r->logs = mem_zero_n(2, sizeof(*r->logs));
		r->n_logs = 2;
		for (size_t j = 0; j < 2; j++) {
			r->logs[j].key = text_copy("k");
			r->logs[j].container = text_copy("");
		}
	}
	job->replicas[1].logs[1].disk = ENOSPC;
	assert_why(job, "The output of trainer-1" REFUSED);
	job->replicas[2].logs[0].disk = ENOSPC;
	assert_why(job, "The output of trainer-1 and of 1 more" REFUSED);
	job->state = SPEC_FAILED;
	failed(job, 0, 300, 3, 0);
	assert_why(job, "trainer-0 ended with exit code 3. There was no retry, because max_retries "
			"is 0. Its output is in trainer-0/log. The output of trainer-1 and of 1 "
			"more" REFUSED);
	set(&job->last_words, "boom");
	assert_why(job, "trainer-0 ended with exit code 3. There was no retry, because max_retries "
			"is 0. Its output is in trainer-0/log. Its last output:\n    boom\nThe "
			"output of trainer-1 and of 1 more" REFUSED);
}

/* kxfs still fetches logs of a finished job. The text reports that if it takes a while. */
static void test_behind(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_SUCCEEDED, "Completed");

	for (size_t i = 1; i < 3; i++) {
		struct spec_replica *r = &job->replicas[i];

		r->logs = mem_zero_n(1, sizeof(*r->logs));
		r->n_logs = 1;
		r->logs[0].key = text_copy("k");
		r->logs[0].container = text_copy("");
	}
	job->replicas[1].logs[0].waiting = true;
	assert_why(job, "");
	job->behind = true;
	assert_why(job, "kxfs has not fetched the end of 1 log from the cluster yet.\n");
	job->replicas[2].logs[0].waiting = true;
	assert_why(job, "kxfs has not fetched the end of 2 logs from the cluster yet.\n");
	job->replicas[1].state = SPEC_RUNNING;
	assert_why(job, "1 pod of the job still runs, and kxfs captures what it prints. kxfs has "
			"not fetched the end of 1 log from the cluster yet.\n");
	job->replicas[2].state = SPEC_RUNNING;
	assert_why(job, "2 pods of the job still run, and kxfs captures what they print.\n");
	job->replicas[1].state = job->replicas[2].state = SPEC_SUCCEEDED;
	job->replicas[1].logs[0].waiting = job->replicas[2].logs[0].waiting = false;
	assert_why(job, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_to_say),
		cmocka_unit_test(test_last_words),
		cmocka_unit_test(test_uncounted_retries),
		cmocka_unit_test(test_exact),
		cmocka_unit_test(test_silent),
		cmocka_unit_test(test_first_failure),
		cmocka_unit_test(test_signal_and_retries),
		cmocka_unit_test(test_exit_code_hints),
		cmocka_unit_test(test_time_limit),
		cmocka_unit_test(test_start_error),
		cmocka_unit_test(test_job_says_it),
		cmocka_unit_test(test_cancelled),
		cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_cluster_waiting),
		cmocka_unit_test(test_cluster_failed),
		cmocka_unit_test(test_memory),
		cmocka_unit_test(test_one_line),
		cmocka_unit_test(test_output_lost),
		cmocka_unit_test(test_disk_refuses),
		cmocka_unit_test(test_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
