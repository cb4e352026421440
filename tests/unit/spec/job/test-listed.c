/* SPDX-License-Identifier: MIT */
/* spec/job/listed.h: a line says the same of a job as its status.json; a line that is not that of a job is refused. */
#include <errno.h>

#include "spec/job/listed.h"
#include "spec/job/status.h"
#include "tests/unit/unit.h"

static struct spec_job *sample(void)
{
	struct spec_job *job = spec_job_new(1, 2);

	spec_set(&job->id, "a-x7k2");
	spec_set(&job->uid, "u-1");
	spec_set(&job->message, "line\n\"two\" \xc3\xa4");
	spec_set(&job->backend, "volcano");
	spec_set(&job->flavors, "cpu=spot,nvidia.com/gpu=a100");
	job->state = SPEC_FAILED;
	job->created = INT64_C(1763715600000000000);
	job->finished = job->created + INT64_C(5000000000);
	job->retries = 3;
	spec_transitions_add(&job->transitions, SPEC_RUNNING, "Running", job->created);
	spec_set(&job->roles[0].name, "trainer");
	job->roles[0].desired = job->roles[0].n = 2;
	job->replicas[1].gap = 2;
	for (unsigned i = 0; i < 2; i++) {
		spec_set(&job->replicas[i].name, i ? "trainer-1" : "trainer-0");
		job->replicas[i].id = i;
		job->replicas[i].state = SPEC_FAILED;
		job->replicas[i].exit_code = 7;
	}
	return job;
}

/* The line of JOB in a list. */
static char *line_of(const struct spec_job *job)
{
	cleanup_free char *status = NULL;
	size_t len;

	spec_status_json_line(job, &status, &len);
	status[len - 1] = '\0';
	return text_print("{\"uid\":\"%s\",%s", job->uid, status + 1);
}

static void test_same(void **state)
{
	const struct spec_job *job cleanup_job = sample();
	struct spec_job *read cleanup_job = NULL;
	cleanup_free char *line = line_of(job), *first = NULL, *second = NULL;
	struct spec_job *bare cleanup_job = NULL;
	size_t len;

	assert_int_equal(spec_listed_parse(line, strlen(line), &read), 0);
	assert_true(read->archived && read->brief && read->history && !read->own);
	assert_int_equal(read->changed, job->finished);
	assert_string_equal(read->replicas[1].name, "trainer-1");
	spec_status_json_line(job, &first, &len);
	spec_status_json_line(read, &second, &len);
	assert_string_equal(first, second);
	/* The line that is made from the fields of the job. */
	bare = spec_job_copy(read);
	spec_text_unref(take_ptr(bare->line));
	free(second);
	spec_status_json_line(bare, &second, &len);
	assert_string_equal(first, second);
}

static void test_refused(void **state)
{
	static const char *const lines[] = {
		"",
		"[]",
		"{}",
		"{\"uid\":\"u\"",
		"{\"uid\":\"u\",\"id\":\"..\"}",
		"{\"uid\":\"u\",\"id\":\"a/b\"}",
		"{\"uid\":\"u/v\",\"id\":\"a\"}",
		"{\"uid\":\"\",\"id\":\"a\"}",
		"{\"uid\":\"u\",\"id\":\"a\\u0000\\n\",\"roles\":[{\"name\":\"a\\u0001\",\"replicas\":1}]}x",
	};
	struct spec_job *job;

	for (size_t i = 0; i < array_size(lines); i++)
		assert_int_equal(spec_listed_parse(lines[i], strlen(lines[i]), &job), -EINVAL);
}

static void test_no_line(void **state)
{
	/* In these the uid stands elsewhere; and a line with what a terminal would obey is not passed on. */
	static const char *const lines[] = {
		"{\"id\":\"a\",\"uid\":\"u\"}",
		"{\"uid\":\"u\",\"id\":\"a\",\"x\":\"\xc2\x9b\"}",
	};

	for (size_t i = 0; i < array_size(lines); i++) {
		struct spec_job *job cleanup_job = NULL;

		assert_int_equal(spec_listed_parse(lines[i], strlen(lines[i]), &job), 0);
		assert_null(job->line);
		assert_int_equal(job->state, SPEC_UNKNOWN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
