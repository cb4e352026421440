/* SPDX-License-Identifier: MIT */
/* The paragraph of `why`: what it tells the owner for each kind of trouble. */
#include <errno.h>

#include "spec/job/status.h"
#include "tests/unit/unit.h"

/* Return a job with three replicas in STATE, none of which has a reason. */
static struct spec_job *job_in(enum spec_state state, const char *phase)
{
	static const char *const names[] = {"trainer-0", "trainer-1", "reader-0"};
	struct spec_job *job = spec_job_new(2, array_size(names));

	job->state = state;
	spec_set(&job->phase, phase);
	spec_set(&job->roles[0].name, "trainer");
	spec_set(&job->roles[1].name, "reader");
	for (size_t i = 0; i < array_size(names); i++) {
		spec_set(&job->replicas[i].name, names[i]);
		job->replicas[i].role = i / 2;
		job->replicas[i].state = state;
		job->replicas[i].started = 1;
	}
	return job;
}

static struct spec_replica *failed(struct spec_job *job, size_t i, int64_t finished, int exit_code)
{
	struct spec_replica *r = &job->replicas[i];

	r->state = SPEC_FAILED;
	r->finished = finished;
	r->exit_code = exit_code;
	spec_set(&r->reason, "Error");
	spec_set(&r->message, "what the backend says");
	return r;
}

/* Return a job that failed because its replica trainer-0 ended with exit code 3. */
static struct spec_job *failed_job(void)
{
	struct spec_job *job = job_in(SPEC_CANCELLED, "Failed");

	job->state = SPEC_FAILED;
	failed(job, 0, 300, 3);
	return job;
}

static void assert_why(const struct spec_job *job, const char *want)
{
	cleanup_free char *text = NULL;
	size_t len;

	spec_status_why(job, ~0u, &text, &len);
	assert_int_equal(len, strlen(text));
	assert_string_equal(text, want);
}

#define NO_RETRY " There was no retry, because max_retries is 0."
#define OUTPUT	 " Its output is in trainer-0/log."
#define EXIT_3	 "trainer-0 ended with exit code 3."

static void test_nothing_to_say(void **state)
{
	static const enum spec_state states[] = {SPEC_SUBMITTED, SPEC_PENDING, SPEC_RUNNING,
						 SPEC_SUCCEEDED, SPEC_UNKNOWN};

	for (size_t i = 0; i < array_size(states); i++) {
		cleanup_job struct spec_job *job = job_in(states[i], "Some");

		assert_why(job, "");
	}
}

/* What trainer-0 died of. */
static void test_failures(void **state)
{
	static const struct spec_request given = {-1, -1, INT64_C(17179869184), -1};
	static const struct {
		const char *reason, *message;
		int exit_code, signal;
		int64_t time_limit, memory; /* the largest sample */
		bool limited;		    /* the limit of memory is known */
		const char *why;
	} rows[] = {
		{.exit_code = 3, .why = "ended with exit code 3."},
		{.exit_code = 126,
		 .why = "ended with exit code 126 (in a shell: a command can't be executed)."},
		{.exit_code = 127,
		 .why = "ended with exit code 127 (in a shell: a command was not found)."},
		{.signal = 40, .why = "was killed by signal 40."},
		/* what the replica's reason says counts, not the exit code of the program */
		{.reason = "Evicted",
		 .message = "The node was low on resource: memory",
		 .exit_code = 137,
		 .why = "failed (Evicted): The node was low on resource: memory."},
		{.message = "container side: exit code 1",
		 .why = "failed: container side: exit code 1."},
		{.reason = "OutputLost",
		 .message = "killed by signal 13 (SIGPIPE); its output can't be written: No space",
		 .signal = 13,
		 .why = "failed: killed by signal 13 (SIGPIPE); its output can't be written: No "
			"space."},
		/* the limits of time and memory, and the highest sample if it was large */
		{.reason = "DeadlineExceeded", .why = "ran longer than its time limit."},
		{.reason = "DeadlineExceeded",
		 .time_limit = 5400,
		 .why = "ran longer than its time limit of 90m."},
		{.reason = "OOMKilled",
		 .exit_code = 137,
		 .why = "was killed because it used more memory than its limit. Role trainer must "
			"request more memory, or use less."},
		{.reason = "OOMKilled",
		 .exit_code = 137,
		 .memory = INT64_C(16965120819),
		 .limited = true,
		 .why = "was killed because it used more memory than its limit of 16 GiB. Role "
			"trainer must request more memory, or use less. kxfs measured up to 15.8 "
			"GiB of memory."},
		{.signal = 9,
		 .memory = INT64_C(67108864),
		 .why = "was killed by signal 9 (SIGKILL), which the kernel also sends when memory "
			"runs out. kxfs measured up to 64 MiB of memory."},
		{.signal = 9,
		 .memory = INT64_C(67108863),
		 .why = "was killed by signal 9 (SIGKILL), which the kernel also sends when memory "
			"runs out."},
		{.signal = 15,
		 .memory = INT64_C(67108864),
		 .why = "was killed by signal 15 (SIGTERM)."},
		{.exit_code = 137,
		 .memory = INT64_C(1073741824),
		 .why = "ended with exit code 137, which means signal 9 (SIGKILL), which the "
			"kernel also sends when memory runs out. kxfs measured up to 1 GiB of "
			"memory."},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_job struct spec_job *job = failed_job();
		struct spec_replica *r = &job->replicas[0];
		const struct spec_usage used = {.memory_peak = rows[i].memory};
		cleanup_free char *want =
			text_print("trainer-0 %s" NO_RETRY OUTPUT "\n", rows[i].why);

		job->time_limit = rows[i].time_limit;
		r->exit_code = rows[i].exit_code;
		r->signal = rows[i].signal;
		if (rows[i].reason)
			spec_set(&r->reason, rows[i].reason);
		if (rows[i].message)
			spec_set(&r->message, rows[i].message);
		if (rows[i].limited)
			spec_role_set_request(&job->roles[0], &given);
		spec_replica_set_usage(r, &used);
		assert_why(job, want);
	}
}

/* A sidecar was killed for its memory. The limit and the samples are those of another container. */
static void test_blamed(void **state)
{
	static const struct spec_request given = {-1, -1, INT64_C(17179869184), -1};
	static const struct spec_usage used = {.memory_peak = INT64_C(16965120819)};
	cleanup_job struct spec_job *job = failed_job();

	spec_set(&job->replicas[0].reason, "OOMKilled");
	spec_set(&job->replicas[0].blamed, "side");
	spec_role_set_request(&job->roles[0], &given);
	spec_replica_set_usage(&job->replicas[0], &used);
	assert_why(job, "trainer-0 was killed because it used more memory than its limit. Role "
			"trainer must request more memory, or use less." NO_RETRY
			" The output of that container is in trainer-0/side.log.\n");
}

/* tests/mount/test_tree.py has the other hints. */
static void test_start_error(void **state)
{
	static const struct {
		const char *message, *hint;
	} rows[] = {
		{"exec: \"pyton3\": not found in PATH",
		 " Check the entrypoint of role trainer: it must be a program in PATH or the path "
		 "of an executable file."},
		{"working directory \"/x\": No such file or directory", ""},
		{"its output can't be stored: No space left on device",
		 " The program did not cause this: fix the problem, then submit the file again."},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		cleanup_job struct spec_job *job = failed_job();
		cleanup_free char *want = text_print("trainer-0 could not be started: %s.%s%s\n",
						     rows[i].message, rows[i].hint, NO_RETRY);

		job->replicas[0].started = 0;
		spec_set(&job->replicas[0].reason, "StartError");
		spec_set(&job->replicas[0].message, rows[i].message);
		assert_why(job, want);
	}
}

static void test_retries(void **state)
{
	cleanup_job struct spec_job *job = failed_job();

	job->max_retries = 1;
	assert_why(job, EXIT_3 " Retries used: 0; max_retries is 1." OUTPUT "\n");
	job->retries = 2;
	assert_why(job, EXIT_3 " Retries used: 2; max_retries is 1." OUTPUT "\n");
	job->max_retries = 0;
	assert_why(job, EXIT_3 " Retries used: 2; max_retries is 0." OUTPUT "\n");
	/* `why` does not deny retries that were not counted. */
	job->retries = 0;
	job->replicas[0].attempt = 1;
	assert_why(job, EXIT_3 OUTPUT "\n");
	job->replicas[0].attempt = 0;
	job->uncounted = true;
	job->max_retries = 1;
	assert_why(job, EXIT_3 OUTPUT "\n");
}

/* The job's own message explains what happened to the whole job, if its reason is exact. */
static void test_job_says_it(void **state)
{
	cleanup_job struct spec_job *job = failed_job();

	spec_set(&job->message, "too late");
	job->exact = true;
	assert_why(job, "The job failed: too late.\n");
	job->exact = false;
	spec_set(&job->phase, "Terminated");
	assert_why(job, "The job was ended: too late.\n");
	spec_set(&job->phase, "Failed");
	job->replicas[0].exit_code = 0;
	spec_set(&job->replicas[0].reason, "KxfsRestarted");
	spec_set(&job->replicas[0].message, "");
	assert_why(job, "The job failed: too late.\n");
	/* its replicas have succeeded, but what they printed is lost */
	job->state = SPEC_SUCCEEDED;
	assert_why(job, "");
	spec_set(&job->reason, "OutputLost");
	assert_why(job, "too late.\n");
}

/*
 * The last lines of the log are below the paragraph, each line indented. A program whose output was
 * lost has not printed nothing.
 */
static void test_last_words(void **state)
{
	cleanup_job struct spec_job *job = failed_job();

	spec_set(&job->last_words, "one\n  two");
	assert_why(job, EXIT_3 NO_RETRY OUTPUT " Its last output:\n    one\n      two\n");
	job->state = SPEC_RUNNING;
	assert_why(job, EXIT_3 NO_RETRY "\n");
	job->state = SPEC_FAILED;
	spec_set(&job->last_words, "");
	job->silent = true;
	spec_set(&job->replicas[0].reason, "OutputLost");
	spec_set(&job->replicas[0].message, "No space left on device");
	assert_why(job, "trainer-0 failed: No space left on device." NO_RETRY OUTPUT "\n");
}

/*
 * `why` names the replica that failed first. It does not name the first one in the list, or one
 * that was ended because of the failure.
 */
static void test_first_failure(void **state)
{
	cleanup_job struct spec_job *job = failed_job();

	failed(job, 1, 200, 4);
	job->replicas[2].finished = 100;
	assert_why(job, "trainer-1 ended with exit code 4. It was the first of 2 failed "
			"replicas." NO_RETRY " Its output is in trainer-1/log.\n");
}

static void test_cancelled(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_CANCELLED, "Cancelled");

	assert_why(job, "The job was cancelled.\n");
	spec_set(&job->message, "its directory was removed");
	assert_why(job, "The job was cancelled: its directory was removed.\n");
}

static void test_waiting(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_RUNNING, "Running");
	struct spec_replica *r = failed(job, 1, 0, 1);

	r->state = SPEC_PENDING;
	job->retries = 1;
	job->max_retries = 3;
	/* A replica that is only restarted along with others is not the cause. */
	job->replicas[0].state = SPEC_PENDING;
	spec_set(&job->replicas[0].reason, "Restarting");
	spec_set(&job->replicas[0].message, "killed by signal TERM");
	assert_why(job, "trainer-1 ended with exit code 1. It will be restarted soon. "
			"Retries used: 1; max_retries is 3.\n");
	/*
	 * The replica is started again although its owner requested no retries. So the text must
	 * not deny a restart.
	 */
	job->retries = job->max_retries = 0;
	assert_why(job, "trainer-1 ended with exit code 1. It will be restarted soon.\n");
	spec_set(&r->reason, "StartDelayed");
	spec_set(&r->message, "Resource temporarily unavailable");
	assert_why(job, "trainer-1 can't be started yet (kxfs retries): Resource "
			"temporarily unavailable.\n");
	/* what a cluster reports about a pod that can't start */
	job->state = SPEC_PENDING;
	r->exit_code = -1;
	spec_set(&job->message, "trainer-1: no such host");
	spec_set(&r->reason, "ImagePullBackOff");
	spec_set(&r->message, "no such host");
	assert_why(job, "trainer-1 can't start: its image can't be pulled: no such host. Check "
			"the image's name and tag, and that the cluster's nodes may pull it.\n");
	spec_set(&r->reason, "Unschedulable");
	spec_set(&r->message, "0/1 nodes are available");
	assert_why(job, "trainer-1 fits on no node: 0/1 nodes are available.\n");
}

static void test_one_line(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_PENDING, "Pending");
	char text[2000], want[2000];

	spec_set(&job->message, "two\nlines,\tand \x1b[31mred!");
	assert_why(job, "two lines, and  [31mred!\n");

	/* A long message is truncated between characters. */
	memset(text, 'x', sizeof(text));
	memcpy(text + 499, "\u00e9", 2);
	text[1000] = '\0';
	spec_set(&job->message, text);
	snprintf(want, sizeof(want), "%.501s ...\n", text);
	assert_why(job, want);
}

/* If the disk refuses something, the text reports that at the end, for a job in any state. */
static void test_disk_refuses(void **state)
{
#define REFUSED                                                                                    \
	" can't be written to the state directory: No space left on device. kxfs retries "         \
	"automatically, but output that the cluster removes meanwhile is lost.\n"
	cleanup_job struct spec_job *job = failed_job();

	job->state = SPEC_RUNNING;
	job->replicas[0].state = SPEC_RUNNING;
	spec_replica_add_log(&job->replicas[1], "p.0", NULL);
	spec_replica_add_log(&job->replicas[1], "p.1", NULL);
	spec_replica_add_log(&job->replicas[2], "q.0", NULL);
	job->replicas[1].logs[1].disk = job->replicas[2].logs[0].disk = ENOSPC;
	assert_why(job, "The output of trainer-1 and of 1 more" REFUSED);
	job->state = job->replicas[0].state = SPEC_FAILED;
	spec_set(&job->last_words, "boom");
	assert_why(job, EXIT_3 NO_RETRY OUTPUT " Its last output:\n    boom\nThe output of "
					       "trainer-1 and of 1 more" REFUSED);
}

/* kxfs still fetches logs of a finished job. The text reports that if it takes a while. */
static void test_behind(void **state)
{
	cleanup_job struct spec_job *job = job_in(SPEC_SUCCEEDED, "Completed");

	for (size_t i = 1; i < 3; i++) {
		spec_replica_add_log(&job->replicas[i], "k", NULL);
		job->replicas[i].logs[0].waiting = true;
	}
	assert_why(job, "");
	job->behind = true;
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
		cmocka_unit_test(test_nothing_to_say), cmocka_unit_test(test_failures),
		cmocka_unit_test(test_blamed),	       cmocka_unit_test(test_start_error),
		cmocka_unit_test(test_retries),	       cmocka_unit_test(test_job_says_it),
		cmocka_unit_test(test_last_words),     cmocka_unit_test(test_first_failure),
		cmocka_unit_test(test_cancelled),      cmocka_unit_test(test_waiting),
		cmocka_unit_test(test_one_line),       cmocka_unit_test(test_disk_refuses),
		cmocka_unit_test(test_behind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
