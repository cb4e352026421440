/* SPDX-License-Identifier: MIT */
/* backend/archive/s3.h: what is sent, what answers come to, and when something is asked twice or not at all. */
#include "tests/unit/backend/archive/s3_rig.h"

#include "backend/archive/s3.h"

static void *s3;

/* How the last call has ended, and how many have. */
static struct {
	unsigned n;
	int err;
	char *text, *bytes, *names;
	bool more;
} told;

static void note(int err, const char *text)
{
	told.n++;
	told.err = err;
	text_set(&told.text, "%s", text);
}

static void on_put(void *data, int err, const char *text)
{
	note(err, text);
}

static void on_get(void *data, int err, const char *text, const char *bytes, size_t n)
{
	note(err, text);
	text_set(&told.bytes, "%.*s", (int)n, err ? "" : bytes);
}

static void on_list(void *data, int err, const char *text, const struct archive_object *objects,
		    size_t n, bool more)
{
	note(err, text);
	text_set(&told.names, "%s", "");
	for (size_t i = 0; i < n; i++)
		text_set(&told.names, "%s%s:%d ", told.names, objects[i].name,
			 (int)objects[i].size);
	told.more = more;
}

static void put(void)
{
	archive_s3_ops.put(s3, "a b/c", "bytes", 5, on_put, NULL);
	fake_run();
}

static void get(uint64_t at, size_t n)
{
	archive_s3_ops.get(s3, "d/log/0", at, n, on_get, NULL);
	fake_run();
}

static void list(const char *after)
{
	archive_s3_ops.list(s3, "d/", after, on_list, NULL);
	fake_run();
}

static struct http_request *sent(void)
{
	assert_non_null(fake.requests);
	assert_null(fake.requests->next);
	return fake.requests;
}

static void answer(int status, const char *body)
{
	fake_answer(sent(), status, body);
	fake_run();
}

static void expect(int err, const char *part)
{
	assert_null(fake.requests);
	assert_int_equal(told.err, err);
	assert_string_equal(strstr(told.text, part) ? part : told.text, part);
}

static int setup(void **state)
{
	const struct archive_config config = {.place = "s3://logs/kx",
					      .endpoint = "https://s3.example.org",
					      .region = "eu-1"};
	char *why;

	rig_setup(state);
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE",
		  "[default]\naws_access_key_id = AK\naws_secret_access_key = SECRET\n"
		  "aws_session_token = TOKEN\n");
	fake.n_sent = 0;
	told.n = 0;
	fake.now += 60000; /* what was away in the test before */
	return archive_s3_new(NULL, &config, &s3, &why);
}

static void on_stopped(void *data)
{
	*(bool *)data = true;
}

static int end(void **state)
{
	bool stopped = false;

	if (s3) {
		archive_s3_ops.stop(s3, on_stopped, &stopped);
		fake_run();
		assert_true(stopped);
		archive_s3_ops.free(take_ptr(s3));
	}
	free(take_ptr(told.text));
	free(take_ptr(told.bytes));
	free(take_ptr(told.names));
	return rig_teardown(state);
}

/* --- what is sent --- */

static void test_put(void **state)
{
	const struct http_signature *signature;

	put();
	assert_int_equal(sent()->call.method, HTTP_PUT);
	assert_string_equal(sent()->path, "/kx/a%20b/c");
	assert_string_equal(sent()->body, "bytes");
	assert_string_equal(sent()->call.type, "application/octet-stream");
	assert_int_equal(sent()->call.range, 0);
	assert_false(sent()->call.retry);
	signature = sent()->call.signature;
	assert_string_equal(signature->scope, "aws:amz:eu-1:s3");
	assert_string_equal(signature->id, "AK");
	assert_string_equal(signature->secret, "SECRET");
	assert_string_equal(signature->token, "TOKEN");
	answer(200, "");
	expect(0, "");
}

static void test_get(void **state)
{
	get(100, 50);
	assert_int_equal(sent()->call.method, HTTP_GET);
	assert_string_equal(sent()->path, "/kx/d/log/0");
	assert_int_equal(sent()->call.range_at, 100);
	assert_int_equal(sent()->call.range, 50);
	assert_int_equal(sent()->call.len, 0);
	assert_true(sent()->call.retry && sent()->call.impatient);
	answer(206, "part");
	expect(0, "");
	assert_string_equal(told.bytes, "part");
	/* Behind its end there is nothing. */
	get(100, 50);
	answer(416, "<Error><Code>InvalidRange</Code></Error>");
	expect(0, "");
	assert_string_equal(told.bytes, "");
	/* A server that knows no ranges, and one that sends too much. */
	get(3, 4);
	answer(200, "0123456789");
	assert_string_equal(told.bytes, "3456");
	get(11, 4);
	answer(200, "0123456789");
	assert_string_equal(told.bytes, "");
	get(3, 4);
	answer(206, "3456789");
	assert_string_equal(told.bytes, "3456");
}

static void test_list(void **state)
{
	list("x");
	assert_string_equal(sent()->path, "/?delimiter=%2F&encoding-type=url&list-type=2"
					  "&max-keys=1000&prefix=kx%2Fd%2F&start-after=kx%2Fd%2Fx");
	answer(200,
	       "<ListBucketResult><IsTruncated>true</IsTruncated><CommonPrefixes><Prefix>kx/d/y/"
	       "</Prefix></CommonPrefixes><Contents><Key>kx/d/xx</Key><Size>3</Size></Contents>"
	       "</ListBucketResult>");
	expect(0, "");
	assert_string_equal(told.names, "xx:3 y/:0 ");
	assert_true(told.more);
	list(NULL);
	assert_null(strstr(sent()->path, "start-after"));
	answer(200, "<ListBucketResult/>");
	assert_string_equal(told.names, "");
	assert_false(told.more);
}

/* A page in which nothing is ours is no answer yet. */
static void test_foreign_pages(void **state)
{
	list(NULL);
	answer(200, "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>kx/d/a/b</Key>"
		    "</Contents></ListBucketResult>");
	assert_non_null(strstr(sent()->path, "&start-after=kx%2Fd%2Fa%2Fb"));
	answer(200, "<ListBucketResult><Contents><Key>kx/d/c</Key></Contents></ListBucketResult>");
	expect(0, "");
	assert_string_equal(told.names, "c:0 ");
	/* A server that goes on like that for ever. */
	list(NULL);
	for (unsigned i = 0; fake.requests; i++) {
		cleanup_free char *page = text_print(
			"<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>kx/d/a/%03u"
			"</Key></Contents></ListBucketResult>",
			i);

		assert_true(i < 200);
		answer(200, page);
	}
	expect(0, "");
	assert_string_equal(told.names, "");
	/* Or that says the same again. */
	list("m");
	answer(200, "<ListBucketResult><IsTruncated>true</IsTruncated><Contents><Key>kx/d/m</Key>"
		    "</Contents></ListBucketResult>");
	expect(-EIO, "the same again");
}

/* --- what is refused --- */

static void test_refusals(void **state)
{
	get(0, 10);
	answer(404, "<Error><Code>NoSuchKey</Code></Error>");
	expect(-ENOENT, "read s3://logs/kx/d/log/0: 404 NoSuchKey");
	put();
	answer(503, "<Error><Code>SlowDown</Code></Error>");
	expect(-EAGAIN, "write s3://logs/kx/a b/c: 503 SlowDown");
	list(NULL);
	answer(404, "<Error><Code>NoSuchBucket</Code></Error>");
	expect(-EIO, "list s3://logs/kx/d/: 404 NoSuchBucket");
	list(NULL);
	answer(200, "<html>Login</html>");
	expect(-EIO, "is none");
	put();
	fake_end(sent(),
		 &(struct http_reply){.status = 403,
				      .body = "<Error><Code>RequestTimeTooSkewed</Code></Error>",
				      .date = loop_time_ns() / 1000000000 + 7200});
	fake_run();
	expect(-EACCES, "the clock of this machine is 2h behind the server's");
}

/* Other keys are tried once; those that the server has refused are not sent for ever. */
static void test_other_keys(void **state)
{
	put();
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE",
		  "[default]\naws_access_key_id = AK2\naws_secret_access_key = SECRET2\n");
	answer(403, "<Error><Code>InvalidAccessKeyId</Code></Error>");
	assert_string_equal(sent()->call.signature->id, "AK2");
	assert_string_equal(sent()->body, "bytes");
	assert_int_equal(told.n, 0);
	answer(200, "");
	expect(0, "");
	put();
	answer(403, "<Error><Code>AccessDenied</Code></Error>");
	expect(-EACCES, "no right");
	fake_pass(5000);
	put();
	answer(403, "<Error><Code>AccessDenied</Code></Error>");
	answer(403, "<Error><Code>AccessDenied</Code></Error>");
	expect(-EACCES, "no right");
	assert_null(strstr(told.text, "AK2"));
}

static void test_no_keys(void **state)
{
	rig_remove("credentials");
	get(0, 1);
	expect(-EACCES, "credentials: No such file");
	assert_int_equal(fake.n_sent, 0);
}

/* --- a server that is away --- */

static void test_away(void **state)
{
	get(0, 1);
	fake_break(sent(), -EHOSTUNREACH, false);
	expect(-EHOSTUNREACH, "it broke");
	for (int i = 0; i < 3; i++) {
		put();
		expect(-EHOSTUNREACH, "it broke");
	}
	assert_int_equal(fake.n_sent, 1);
	fake_pass(5000);
	put();
	answer(200, "");
	expect(0, "");
	/* Another failure is of that request alone. */
	put();
	fake_break(sent(), -EIO, true);
	expect(-EIO, "it broke");
	put();
	answer(200, "");
	expect(0, "");
}

/* What is under way when all ends tells nobody. */
static void test_stop(void **state)
{
	unsigned before = told.n;

	put();
	get(0, 1);
	list(NULL);
	archive_s3_ops.put(s3, "not begun yet", "b", 1, on_put, NULL);
	end(NULL);
	rig_setup(NULL);
	assert_int_equal(told.n, before);
}

static void test_config(void **state)
{
	static const struct archive_config wrong[] = {
		{.place = "s3://UPPER"},
		{.place = "s3://logs", .endpoint = "nonsense"},
		{.place = "s3://logs", .region = "no region"},
	};
	struct archive_config config = {.place = "s3://logs", .endpoint = "", .region = ""};
	void *impl;

	for (size_t i = 0; i < array_size(wrong); i++) {
		cleanup_free char *why = NULL;

		assert_int_equal(archive_s3_new(NULL, &wrong[i], &impl, &why), -EINVAL);
		assert_non_null(why);
	}
	end(NULL);
	rig_setup(NULL);
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE",
		  "[default]\naws_access_key_id = AK\naws_secret_access_key = s\n");
	setenv("AWS_DEFAULT_REGION", "eu-2", 1);
	setenv("AWS_REGION", "eu-3", 1);
	{
		cleanup_free char *why = NULL;

		assert_int_equal(archive_s3_new(NULL, &config, &s3, &why), 0);
	}
	put();
	assert_string_equal(sent()->call.signature->scope, "aws:amz:eu-3:s3");
	assert_string_equal(sent()->path, "/a%20b/c");
	answer(200, "");
}

#define TEST(t) cmocka_unit_test_setup_teardown(test_##t, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(put),	  TEST(get),	 TEST(list), TEST(foreign_pages), TEST(refusals),
		TEST(other_keys), TEST(no_keys), TEST(away), TEST(stop),	  TEST(config),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
