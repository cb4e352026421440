/* SPDX-License-Identifier: MIT */
/*
 * spec/job/snapshot.c: a snapshot that was written is the same after it was read. Anything else is
 * refused.
 */
#include <errno.h>

#include "spec/base/mem.h"
#include "spec/job/status.h"
#include "tests/unit/unit.h"

#define OBJECT "{\"metadata\":{\"name\":\"a\"}}"

static struct spec_job *sample(void)
{
	struct spec_job *job = spec_job_new(2, 3);

	spec_set(&job->id, "a-x7k2");
	spec_set(&job->uid, "u-1");
	spec_set(&job->message, "line\n\"two\" \xc3\xa4");
	spec_set(&job->last_words, "one\n  two");
	job->state = SPEC_FAILED;
	job->created = 1763715600123456789;
	spec_transitions_add(&job->transitions, SPEC_PENDING, "Pending", 5);
	spec_transitions_add(&job->transitions, SPEC_FAILED, "", 6);
	job->own = job->history = job->exact = job->uncounted = true;
	job->object = spec_text_new(OBJECT, strlen(OBJECT));
	for (unsigned i = 0; i < 3; i++) {
		static const char *const names[] = {"ps-0", "trainer-0", "trainer-1"};
		struct spec_replica *r = &job->replicas[i];

		spec_set(&r->name, names[i]);
		r->role = i > 0;
		r->id = i > 0 ? i - 1 : 0;
		r->exit_code = (int)i;
	}
	spec_role_set_request(&job->roles[1], &(const struct spec_request){4000, 1000000, -1, 2});
	spec_replica_set_usage(&job->replicas[2], &(const struct spec_usage){
							  .cpu_us = 1234567,
							  .cpu_now = -1,
							  .memory_now = 5,
							  .memory_peak = 6,
							  .samples = 7,
							  .first = 8,
							  .last = 9,
						  });
	spec_replica_add_log(&job->replicas[1], "p.c.0", NULL);
	spec_replica_add_log(&job->replicas[1], "p.side.0", "side");
	job->replicas[1].logs[1].complete = true;
	job->replicas[1].logs[1].gap = 2;
	spec_log_lose_end(&job->replicas[1].logs[1]);
	spec_set(&job->roles[0].name, "ps");
	spec_set(&job->roles[1].name, "trainer");
	job->roles[0].n = 1;
	job->roles[1].first = 1;
	job->roles[1].n = 2;
	return job;
}

static void test_same(void **state)
{
	const struct spec_job *job cleanup_job = sample();
	const struct spec_job *read cleanup_job = NULL;
	cleanup_free char *text = spec_snapshot_text(job), *again = NULL;
	cleanup_free char *status = NULL, *status_again = NULL;
	struct spec_job *parsed;
	size_t len;

	assert_int_equal(spec_snapshot_parse(text, strlen(text), &parsed), 0);
	read = parsed;
	again = spec_snapshot_text(read);
	assert_string_equal(again, text);
	spec_status_json(job, &status, &len);
	spec_status_json(read, &status_again, &len);
	assert_string_equal(status_again, status);
	assert_string_equal(read->object->text, OBJECT);
	assert_true(read->own && read->history && read->exact && read->uncounted);
	assert_true(read->replicas[1].logs[1].complete);
	assert_null(read->roles[0].request);
	assert_null(read->replicas[1].usage);
	assert_int_equal(read->replicas[2].usage->last, 9);
	/* that the end of a log was lost is counted once */
	assert_int_equal(read->replicas[1].logs[1].gap, 3);
	spec_log_lose_end(&parsed->replicas[1].logs[1]);
	assert_int_equal(read->replicas[1].logs[1].gap, 3);
}

/* Parse the snapshot TEXT after replacing FROM by TO. */
static int parse_with(const char *text, const char *from, const char *to, struct spec_job **ret)
{
	const char *at = strstr(text, from);
	cleanup_free char *other = NULL;

	assert_non_null(at);
	other = text_print("%.*s%s%s", (int)(at - text), text, to, at + strlen(from));
	return spec_snapshot_parse(other, strlen(other), ret);
}

#define REQUEST "\"request\":{\"cpu\":4000,\"memory\":1000000,\"memory_limit\":-1,\"gpu\":2}"

static void test_refused(void **state)
{
	static const struct {
		const char *from, *to;
		int err;
	} rows[] = {
		{"\"version\":2", "\"version\":1", -ENOTSUP},
		{"\"version\":2", "\"version\":3", -ENOTSUP},
		{"\"version\":2", "\"version\":\"2\"", -EINVAL},
		{"\"version\":2,", "", -EINVAL},
		{"\"id\":\"a-x7k2\"", "\"id\":\"../a\"", -EINVAL},
		{"\"name\":\"trainer-0\"", "\"name\":\"a/b\"", -EINVAL},
		{"\"uid\":\"u-1\"", "\"uid\":\"\"", -EINVAL},
		{"\"key\":\"p.c.0\"", "\"key\":\"..\"", -EINVAL},
		{"\"role\":0", "\"role\":7", -EINVAL},
		{"\"state\":\"FAILED\"", "\"state\":\"WELL\"", -EINVAL},
		/* Texts are UTF-8 without a NUL. Numbers are integers within their range. */
		{"\"uid\":\"u-1\"", "\"uid\":\"u\\u0000x\"", -EINVAL},
		{"\"uid\":\"u-1\"", "\"uid\":\"u\xe4\"", -EINVAL},
		{"\"uid\":\"u-1\"", "\"uid\":[\"u-1\"]", -EINVAL},
		{"{\\\"metadata", "{\\\"\xe4", -EINVAL},
		{"\"gap\":3", "\"gap\":-1", -EINVAL},
		{"\"gap\":3", "\"gap\":3.0", -EINVAL},
		{"\"gap\":3", "\"gap\":18446744073709551616", -EINVAL},
		{"\"exit_code\":2", "\"exit_code\":2e0", -EINVAL},
		{"\"exit_code\":2", "\"exit_code\":2147483648", -EINVAL},
		{"\"created\":1763715600123456789", "\"created\":-1", -EINVAL},
		{"\"created\":1763715600123456789", "\"created\":9223372036854775808", -EINVAL},
		{"\"gpu\":2", "\"gpu\":\"2\"", -EINVAL},
		{"\"cpu\":4000", "\"cpu\":-2", -EINVAL},
		{"\"cpu\":4000", "\"cpu\":9007199254740993", -EINVAL},
		{"\"request\":{", "\"request\":[{},{", -EINVAL},
		{REQUEST, "\"request\":7", -EINVAL},
		{"\"source\":0", "\"source\":2", -EINVAL},
		{"\"source\":0", "\"source\":-1", -EINVAL},
		{"\"cpu_us\":1234567", "\"cpu_us\":-2", -EINVAL},
		{"\"last\":9", "\"last\":-1", -EINVAL},
		{"\"transitions\":[{", "\"transitions\":[{\"time\":1},{", -EINVAL},
		{"\"transitions\":[", "\"transitions\":{},\"more\":[", -EINVAL},
		/* Fields without which the snapshot would be wrong. */
		{"\"state\":\"FAILED\",", "", -EINVAL},
		{",\"gap\":0", "", -EINVAL},
		{",\"gpu\":2", "", -EINVAL},
		{"\"samples\":7,", "", -EINVAL},
		{"}\n", "", -EINVAL},
		{"}\n", "}}\n", -EINVAL},
	};
	const struct spec_job *job cleanup_job = sample();
	cleanup_free char *text = spec_snapshot_text(job);
	struct spec_job *parsed;

	for (size_t i = 0; i < array_size(rows); i++)
		if (parse_with(text, rows[i].from, rows[i].to, &parsed) != rows[i].err)
			fail_msg("%s instead of %s", rows[i].to, rows[i].from);
}

/* A field that is only informative may be missing. Its value is then unknown. */
static void test_missing(void **state)
{
	static const char message[] = "\"message\":\"line\\n\\\"two\\\" \xc3\xa4\",";
	const struct spec_job *job cleanup_job = sample();
	cleanup_free char *text = spec_snapshot_text(job);
	struct spec_job *parsed;

	assert_int_equal(parse_with(text, message, "", &parsed), 0);
	assert_string_equal(parsed->message, "");
	spec_job_unref(parsed);
	assert_int_equal(parse_with(text, "," REQUEST, "", &parsed), 0);
	assert_null(parsed->roles[1].request);
	assert_int_equal(parsed->replicas[2].usage->memory_now, 5);
	spec_job_unref(parsed);
	assert_int_equal(parse_with(text, "\"transitions\":", "\"another\":", &parsed), 0);
	assert_int_equal(parsed->transitions.n, 0);
	spec_job_unref(parsed);
	assert_int_equal(parse_with(text, ",\"object\":", ",\"another\":", &parsed), 0);
	assert_null(parsed->object);
	spec_job_unref(parsed);
}

/* The object is the server's, and may have any bytes. */
static void test_object(void **state)
{
	struct spec_job *job = sample(), *parsed;
	cleanup_free char *text = NULL;

	spec_text_unref(job->object);
	job->object = spec_text_new("{\"a\0b\"}", 8);
	text = spec_snapshot_text(job);
	spec_job_unref(job);
	assert_int_equal(spec_snapshot_parse(text, strlen(text), &parsed), 0);
	assert_int_equal(parsed->object->len, 8);
	assert_memory_equal(parsed->object->text, "{\"a\0b\"}", 8);
	spec_job_unref(parsed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_missing),
		cmocka_unit_test(test_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
