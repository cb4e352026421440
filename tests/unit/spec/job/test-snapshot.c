/* SPDX-License-Identifier: MIT */
/*
 * spec/job/snapshot.c: a snapshot that was written is the same after it was read. Anything else is
 * refused.
 */
#include <errno.h>

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
	spec_status_yaml(job, &status, &len);
	spec_status_yaml(read, &status_again, &len);
	assert_string_equal(status_again, status);
	assert_string_equal(read->object->text, OBJECT);
	assert_true(read->exact && read->uncounted);
	assert_string_equal(read->replicas[1].logs[1].container, "side");
	assert_true(read->replicas[1].logs[1].complete);
	assert_int_equal(read->replicas[1].logs[1].gap, 3);
	spec_log_lose_end(&parsed->replicas[1].logs[1]);
	assert_int_equal(read->replicas[1].logs[1].gap, 3);
	assert_null(read->roles[0].request);
	assert_int_equal(read->roles[1].request->cpu, 4000);
	assert_int_equal(read->roles[1].request->memory_limit, -1);
	assert_int_equal(read->roles[1].request->gpu, 2);
	assert_null(read->replicas[1].usage);
	assert_int_equal(read->replicas[2].usage->cpu_us, 1234567);
	assert_int_equal(read->replicas[2].usage->cpu_now, -1);
	assert_int_equal(read->replicas[2].usage->memory_peak, 6);
	assert_int_equal(read->replicas[2].usage->last, 9);
	assert_int_equal(read->roles[1].first, 1);
	assert_int_equal(read->roles[1].n, 2);
}

/* Parse a snapshot after replacing FROM by TO in its text. */
static int parse_with(const char *from, const char *to, struct spec_job **ret)
{
	const struct spec_job *job cleanup_job = sample();
	cleanup_free char *text = spec_snapshot_text(job), *bad = NULL;
	const char *at = strstr(text, from);

	assert_non_null(at);
	assert_true(asprintf(&bad, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)) > 0);
	return spec_snapshot_parse(bad, strlen(bad), ret);
}

static void refuse(const char *from, const char *to)
{
	struct spec_job *parsed;

	assert_int_equal(parse_with(from, to, &parsed), -EINVAL);
}

/*
 * A field that is only informative may be missing. A field whose absence would make the snapshot
 * wrong may not.
 */
static void test_missing(void **state)
{
	const struct spec_job *read cleanup_job = NULL;
	struct spec_job *parsed;

	assert_int_equal(parse_with("\"message\":\"line\\n\\\"two\\\" \xc3\xa4\",", "", &parsed),
			 0);
	read = parsed;
	assert_string_equal(read->message, "");
	refuse("\"state\":\"FAILED\",", "");
	refuse(",\"gap\":0", "");
}

/* Impossible figures are refused. If a request or a usage is missing, it is unknown. */
static void test_usage(void **state)
{
	const struct spec_job *read cleanup_job = NULL;
	struct spec_job *parsed;

	refuse("\"cpu\":4000", "\"cpu\":-2");
	refuse("\"cpu\":4000", "\"cpu\":9007199254740993");
	refuse("\"gpu\":2", "\"gpu\":\"2\"");
	refuse("\"gpu\":2", "\"gpu\":2.5");
	refuse(",\"gpu\":2", "");
	refuse("\"request\":{", "\"request\":[{},{");
	refuse("\"request\":{\"cpu\":4000,\"memory\":1000000,\"memory_limit\":-1,\"gpu\":2}",
	       "\"request\":7");
	refuse("\"source\":0", "\"source\":2");
	refuse("\"source\":0", "\"source\":-1");
	refuse("\"cpu_us\":1234567", "\"cpu_us\":-2");
	refuse("\"memory_peak\":6", "\"memory_peak\":1e3");
	refuse("\"samples\":7,", "");
	refuse("\"last\":9", "\"last\":-1");
	assert_int_equal(parse_with(",\"request\":{\"cpu\":4000,\"memory\":1000000,"
				    "\"memory_limit\":-1,\"gpu\":2}",
				    "", &parsed),
			 0);
	read = parsed;
	assert_null(read->roles[1].request);
	assert_int_equal(read->replicas[2].usage->memory_now, 5);
}

static void test_version(void **state)
{
	struct spec_job *parsed;

	assert_int_equal(parse_with("\"version\":2", "\"version\":1", &parsed), -ENOTSUP);
	assert_int_equal(parse_with("\"version\":2", "\"version\":3", &parsed), -ENOTSUP);
	refuse("\"version\":2", "\"version\":\"2\"");
	refuse("\"version\":2,", "");
}

static void test_refused(void **state)
{
	refuse("\"id\":\"a-x7k2\"", "\"id\":\"../a\"");
	refuse("\"name\":\"trainer-0\"", "\"name\":\"a/b\"");
	refuse("\"uid\":\"u-1\"", "\"uid\":\"\"");
	refuse("\"key\":\"p.c.0\"", "\"key\":\"..\"");
	refuse("\"role\":0", "\"role\":7");
	refuse("\"state\":\"FAILED\"", "\"state\":\"WELL\"");
	/* Texts are UTF-8 without a NUL. Numbers are integers within their range. */
	refuse("\"uid\":\"u-1\"", "\"uid\":\"u\\u0000x\"");
	refuse("\"uid\":\"u-1\"", "\"uid\":\"u\xe4\"");
	refuse("\"uid\":\"u-1\"", "\"uid\":[\"u-1\"]");
	refuse("{\\\"metadata", "{\\\"\xe4");
	refuse("\"gap\":3", "\"gap\":-1");
	refuse("\"gap\":3", "\"gap\":3.0");
	refuse("\"gap\":3", "\"gap\":18446744073709551616");
	refuse("\"exit_code\":2", "\"exit_code\":2e0");
	refuse("\"exit_code\":2", "\"exit_code\":2147483648");
	refuse("\"created\":1763715600123456789", "\"created\":-1");
	refuse("\"created\":1763715600123456789", "\"created\":9223372036854775808");
	refuse("}\n", "");
	refuse("}\n", "}}\n");
}

/* The object is the server's, and may have any fields. */
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
	assert_int_equal(parse_with(",\"object\":", ",\"another\":", &parsed), 0);
	assert_null(parsed->object);
	spec_job_unref(parsed);
}

/* A copy has the same contents, and shares nothing changeable with the original. */
static void test_copy(void **state)
{
	struct spec_job *job = sample();
	cleanup_free char *text = NULL, *copied = NULL, *later = NULL;
	struct spec_job *copy;

	spec_transitions_add(&job->transitions, SPEC_FAILED, "Failed", 7);
	text = spec_snapshot_text(job);
	copy = spec_job_copy(job);
	assert_ptr_equal(copy->object, job->object);
	copied = spec_snapshot_text(copy);
	assert_string_equal(copied, text);
	spec_set(&copy->replicas[1].logs[0].key, "another");
	spec_set(&copy->roles[1].name, "another");
	spec_transitions_add(&copy->transitions, SPEC_PENDING, "Pending", 8);
	later = spec_snapshot_text(job);
	assert_string_equal(later, text);
	spec_job_unref(job);
	assert_string_equal(copy->id, "a-x7k2");
	assert_string_equal(copy->replicas[1].logs[1].container, "side");
	spec_job_unref(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same),	cmocka_unit_test(test_copy),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_missing),
		cmocka_unit_test(test_usage),	cmocka_unit_test(test_version),
		cmocka_unit_test(test_object),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
