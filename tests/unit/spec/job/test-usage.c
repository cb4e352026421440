/* SPDX-License-Identifier: MIT */
/*
 * spec/job/usage.c: a job's usage is the sum of its replicas' known usage. Unknown values are not
 * guessed.
 */

#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "tests/unit/unit.h"

#define SECOND INT64_C(1000000000)

static const struct spec_request given = {.cpu = 2000,
					  .memory = 1000000000,
					  .memory_limit = -1,
					  .gpu = 1};

/*
 * Return a job with two roles and the replicas ps-0, trainer-0 and trainer-1, which started at
 * second 10.
 */
static struct spec_job *running(void)
{
	struct spec_job *job = spec_job_new(2, 3);

	spec_set(&job->id, "a-x7k2");
	job->started = 10 * SECOND;
	for (size_t i = 0; i < 3; i++) {
		job->replicas[i].role = i > 0;
		job->replicas[i].state = SPEC_RUNNING;
		job->replicas[i].started = 10 * SECOND;
	}
	spec_role_set_request(&job->roles[0], &given);
	spec_role_set_request(&job->roles[1], &given);
	return job;
}

static void use(struct spec_job *job, size_t i, int64_t cpu_s, int64_t memory, int64_t last_s)
{
	const struct spec_usage usage = {
		.cpu_us = cpu_s * 1000000 + 999999,
		.cpu_now = 500,
		.memory_now = memory,
		.memory_peak = 2 * memory,
		.samples = 3,
		.first = (11 + (int64_t)i) * SECOND,
		.last = last_s * SECOND,
	};

	spec_replica_set_usage(&job->replicas[i], &usage);
}

static void expect(const struct spec_job *job, const struct spec_replica *r, const char *want)
{
	cleanup_free char *text = NULL;
	size_t len;

	if (r)
		spec_status_replica_usage(job, r, &text, &len);
	else
		spec_status_usage(job, &text, &len);
	assert_string_equal(text, want);
	assert_int_equal(len, strlen(text));
}

/* Assert that the usage of the job contains each line of WANT. */
static void expect_lines(const struct spec_job *job, const char *want)
{
	cleanup_free char *text = NULL, *lines = text_copy(want);
	char *rest = lines, *line;
	size_t len;

	spec_status_usage(job, &text, &len);
	while ((line = strsep(&rest, "\n")))
		if (!strstr(text, line))
			fail_msg("no \"%s\" in: %s", line, text);
}

#define CPU_NOT	   ", seconds: null, now_millicores: null, efficiency_percent: null}\n"
#define MEMORY_NOT ", limit_bytes: null, now_bytes: null, peak_bytes: null, kind: null}\n"
#define TOLD_BY_NO "source: null\nsamples: null\nfirst: null\nlast: null\n"

static void test_sum(void **state)
{
	struct spec_job *job cleanup_job = running();

	use(job, 0, 10, 100, 20);
	use(job, 1, 5, 200, 20);
	use(job, 2, 5, 300, 30);
	expect(job, &job->replicas[0],
	       "elapsed_seconds: 10\n"
	       "cpu: {requested_millicores: 2000, seconds: 10, now_millicores: 500, "
	       "efficiency_percent: 55}\n"
	       "memory: {requested_bytes: 1000000000, limit_bytes: null, now_bytes: 100, "
	       "peak_bytes: 200, kind: resident}\n"
	       "gpu: {requested: 1}\n"
	       "source: rusage+proc\n"
	       "samples: 3\n"
	       "first: 1970-01-01T00:00:11Z\n"
	       "last: 1970-01-01T00:00:20Z\n");
	/* 23 of 2 * (10 + 10 + 20) CPU seconds. */
	expect(job, NULL,
	       "elapsed_seconds: 20\n"
	       "cpu: {requested_millicores: 6000, seconds: 22, now_millicores: 1500, "
	       "efficiency_percent: 29}\n"
	       "memory: {requested_bytes: 3000000000, limit_bytes: null, now_bytes: 600, "
	       "peak_bytes: 1200, kind: resident}\n"
	       "gpu: {requested: 3}\n"
	       "source: rusage+proc\n"
	       "samples: 9\n"
	       "first: 1970-01-01T00:00:11Z\n"
	       "last: 1970-01-01T00:00:30Z\n");
	/* The elapsed time runs until the job's end, not until the last sample. */
	job->finished = 60 * SECOND;
	for (size_t i = 0; i < 3; i++)
		job->replicas[i].finished = 50 * SECOND;
	expect_lines(job, "elapsed_seconds: 50\nefficiency_percent: 10}\n");
	/* A job may also end in the same moment in which it started. */
	job->finished = 10 * SECOND;
	expect_lines(job, "elapsed_seconds: 0\n");
	/* If a job has no start time, the start of its first replica counts. */
	job->finished = 60 * SECOND;
	job->started = 0;
	job->replicas[1].started = 12 * SECOND;
	expect_lines(job, "elapsed_seconds: 40\n");
}

/*
 * Samples tell nothing about the time after the last one. Replicas with figures name the source of
 * these figures.
 */
static void test_sampled(void **state)
{
	struct spec_job *job cleanup_job = running();

	use(job, 0, 10, 100, 20);
	job->replicas[0].usage->source = SPEC_USAGE_METRICS;
	job->replicas[0].finished = job->finished = 30 * SECOND;
	expect(job, &job->replicas[0],
	       "elapsed_seconds: 20\n"
	       "cpu: {requested_millicores: 2000, seconds: 10, now_millicores: 500, "
	       "efficiency_percent: 55}\n"
	       "memory: {requested_bytes: 1000000000, limit_bytes: null, now_bytes: 100, "
	       "peak_bytes: 200, kind: working_set}\n"
	       "gpu: {requested: 1}\n"
	       "source: metrics.k8s.io\n"
	       "samples: 3\n"
	       "first: 1970-01-01T00:00:11Z\n"
	       "last: 1970-01-01T00:00:20Z\n");
	expect_lines(job, "elapsed_seconds: 20\n"
			  "cpu: {requested_millicores: 6000" CPU_NOT
			  "now_bytes: null, peak_bytes: null, kind: working_set}\n"
			  "source: metrics.k8s.io\nsamples: 3\n");
}

/*
 * A replica that has started, but has no figures, makes the sum unknown. A replica that never
 * started has used nothing.
 */
static void test_parts(void **state)
{
	struct spec_job *job cleanup_job = running();

	use(job, 0, 10, 100, 20);
	use(job, 1, 5, 200, 20);
	expect_lines(job, "elapsed_seconds: 10\n"
			  "cpu: {requested_millicores: 6000" CPU_NOT
			  "now_bytes: null, peak_bytes: null, kind: resident}\nsamples: 6\n");
	job->replicas[2].started = 0;
	expect_lines(job, "cpu: {requested_millicores: 6000, seconds: 16, now_millicores: 1000, "
			  "efficiency_percent: 42}\n"
			  "now_bytes: 300, peak_bytes: 600, kind: resident}\nsamples: 6\n");
	expect(job, &job->replicas[2],
	       "elapsed_seconds: null\n"
	       "cpu: {requested_millicores: 2000" CPU_NOT
	       "memory: {requested_bytes: 1000000000" MEMORY_NOT
	       "gpu: {requested: 1}\n" TOLD_BY_NO);
}

/* No figures at all, as for a running job of a cluster. Even the request is unknown. */
static void test_nothing(void **state)
{
	struct spec_job *job cleanup_job = running();

	spec_role_set_request(&job->roles[0], NULL);
	expect(job, NULL,
	       "elapsed_seconds: null\n"
	       "cpu: {requested_millicores: null" CPU_NOT
	       "memory: {requested_bytes: null" MEMORY_NOT "gpu: {requested: null}\n" TOLD_BY_NO);
	job->finished = 15 * SECOND;
	expect_lines(job, "elapsed_seconds: 5\n");
}

/* Sums that overflow, and impossible times, are unknown. */
static void test_extremes(void **state)
{
	struct spec_job *job cleanup_job = running();

	job->replicas[0].started = job->started = 100 * SECOND;
	use(job, 0, 1, INT64_MAX / 2, 20);
	use(job, 1, 1, INT64_MAX / 2 - 1, 20);
	use(job, 2, 1, INT64_MAX / 2 - 1, 20);
	expect_lines(job, "elapsed_seconds: null\n"
			  "seconds: 5, now_millicores: 1500, efficiency_percent: null}\n"
			  "now_bytes: null, peak_bytes: null, kind: resident}\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sum),	 cmocka_unit_test(test_sampled),
		cmocka_unit_test(test_parts),	 cmocka_unit_test(test_nothing),
		cmocka_unit_test(test_extremes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
