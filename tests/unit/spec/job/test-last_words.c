/* SPDX-License-Identifier: MIT */
/* spec/job/last_words.c: the last lines of logs and of error files, whatever they contain. */
#include "spec/job/status.h"
#include "tests/unit/unit.h"

static void assert_lines(const char *text, size_t n, bool part, const char *want)
{
	cleanup_free char *got = spec_last_lines(text, n, part);

	assert_string_equal(got, want);
}

static void test_lines(void **state)
{
	assert_lines("", 0, false, "");
	assert_lines("\n \t\r\n", 5, false, "");
	assert_lines("one", 3, false, "one");
	assert_lines("1\n2\n3\n4\n5\n", 10, false, "1\n2\n3\n4\n5");
	assert_lines("1\n2\n3\n4\n5\n6", 11, false, "2\n3\n4\n5\n6");
	assert_lines("1%\r2%\r\n\n  in\n", 12, false, "1%\n2%\n  in");
	assert_lines("a\0b\x1b[1m\xff\xc3\xa4\n", 11, false, "a b\\x1b[1m\\xff\xc3\xa4");
}

/* If the start of the first line was not read, that line is left out, unless it is the only one. */
static void test_part(void **state)
{
	assert_lines("t of it\nlast\n", 13, true, "last");
	assert_lines("\nlast\n", 6, true, "last");
	assert_lines("t of it\n\n", 9, true, "... t of it");
	assert_lines("0\n1\n2\n3\n4\n5\n", 12, true, "1\n2\n3\n4\n5");
}

/*
 * A long line is truncated between characters. It is cut at its end, or at its front if its start
 * was not read.
 */
static void test_long(void **state)
{
	char text[2001], want[600];

	memset(text, 'x', 1000);
	memcpy(text + 499, "\xc3\xa4", 2);
	snprintf(want, sizeof(want), "%.499s ...", text);
	assert_lines(text, 1000, false, want);
	memcpy(text + 499, "\xc3\xa4", 2);
	snprintf(want, sizeof(want), "... %.499s", text + 501);
	assert_lines(text, 1000, true, want);
	memset(text, '\n', sizeof(text));
	assert_lines(text, sizeof(text), false, "");
}

static void assert_error(const char *text, const char *want)
{
	cleanup_free char *got = spec_last_error(text, strlen(text));

	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
}

#define ERROR(message, stack)                                                                      \
	"{\"message\": {\"message\": \"" message                                                   \
	"\", \"errorCode\": 1, \"extraInfo\": {\"py_callstack\": \"" stack                         \
	"\", \"timestamp\": \"1763715600\"}}}"

static void test_error(void **state)
{
	assert_error(ERROR("E: boom", "Trace:\\n  a\\n  b\\n  c\\n  d\\nE: boom\\n"),
		     "  a\n  b\n  c\n  d\nE: boom");
	assert_error(ERROR("E: boom", "Trace:\\nmodule.E: boom\\n\\n"), "Trace:\nmodule.E: boom");
	assert_error(ERROR("E: boom", "of something else"), "E: boom");
	assert_error(ERROR("E: 1\\n2\\n3\\n4\\n5\\n6", "Trace:\\nE: 1\\n2\\n3\\n4\\n5\\n6"),
		     "E: 1\n2\n3\n4\n5");
	assert_error(ERROR("", "Trace:\\nE"), "Trace:\nE");
	assert_error(ERROR("E \\u001b[31m", ""), "E \\x1b[31m");
	assert_error("{\"message\": \"text alone\"}", "text alone");
	assert_error(ERROR("", ""), NULL);
	assert_error("{\"message\": {\"message\": 1}}", NULL);
	assert_error("{\"message\": [], \"other\": 1}", NULL);
	assert_error("{}", NULL);
	assert_error("Traceback", NULL);
	assert_error("{\"message\": {\"message\": \"cut of", NULL);
	assert_error("", NULL);
}

/*
 * The log is that of the replica that failed first, and of the container that caused the failure,
 * in the latest attempt.
 */
static void test_log(void **state)
{
	cleanup_job struct spec_job *job = spec_job_new(0, 3);

	assert_null(spec_last_log(job));
	for (size_t i = 0; i < 3; i++) {
		job->replicas[i].state = SPEC_FAILED;
		job->replicas[i].finished = 3 - (int64_t)i;
	}
	assert_null(spec_last_log(job));
	spec_replica_add_log(&job->replicas[0], "other", NULL);
	spec_replica_add_log(&job->replicas[2], "0", NULL);
	spec_replica_add_log(&job->replicas[2], "1", NULL);
	spec_replica_add_log(&job->replicas[2], "side", "side");
	assert_string_equal(spec_last_log(job)->key, "1");
	spec_set(&job->replicas[2].blamed, "side");
	assert_string_equal(spec_last_log(job)->key, "side");
	job->exact = true;
	assert_null(spec_last_log(job));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines), cmocka_unit_test(test_part),
		cmocka_unit_test(test_long),  cmocka_unit_test(test_error),
		cmocka_unit_test(test_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
