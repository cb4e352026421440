/* SPDX-License-Identifier: MIT */
/*
 * An archive in a bucket. The server is the test's: it notes what it is asked, and answers as it is told. The tests
 * show what is asked, and what becomes of each sort of answer. That signatures are right is for
 * tests/replay/test_s3.py.
 */
#include <errno.h>
#include <unistd.h>

#include "backend/base/file.h"
#include "backend/client/http.h"
#include "tests/unit/backend/archive/calls.h"
#include "tests/unit/clock.h"

/* --- the server --- */

struct http {
	char none;
};

/* The reply to a request. */
struct answer {
	struct http_reply reply;
	const char *body;
	unsigned late; /* after so many seconds */
	void (*done)(void *data, const struct http_reply *reply);
	void *data;
};

static struct http server;
static struct answer answers[4]; /* to the next requests, in their order */
static size_t n_answers, n_asked;
static char keys_file[] = "/tmp/kxfs-keys-XXXXXX";
static char *asked; /* all requests: their methods, paths, heads, and who has signed them */

int http_new(struct loop *l, const struct spec_connection *c, struct credential *cr,
	     struct http **ret, char **ret_text)
{
	assert_null(cr);
	*ret = &server;
	return 0;
}

void http_free(struct http *h)
{
}

void http_stop(struct http *h, loop_fn fn, void *data)
{
	loop_post(loop, fn, data);
}

static void reply(void *data)
{
	struct answer *a = data;
	struct http_reply r = a->reply;

	r.text = r.err ? "a broken line" : "";
	r.wanted = r.wanted ? r.wanted : "";
	r.body = a->body ? a->body : "";
	r.len = strlen(r.body);
	atomic_fetch_add(&clock_ahead, a->late);
	a->done(a->data, &r);
}

struct http_request *http_send(struct http *h, const struct http_call *c)
{
	struct answer *a = &answers[n_asked];

	assert_true(n_asked < n_answers);
	n_asked++;
	text_set(&asked, "%s%s %s\n%s%s by %s\n", asked ? asked : "",
		 c->method == HTTP_PUT ? "PUT" : "GET", c->path, c->headers, c->key->scope,
		 c->key->id);
	a->done = c->done;
	a->data = c->data;
	loop_post(loop, reply, a);
	return NULL;
}

/* --- a test's --- */

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
/* The hash of "x". */
#define SHA_X "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
#define S3_LIST(more, objects)                                                                     \
	"<ListBucketResult><IsTruncated>" more "</IsTruncated>" objects "</ListBucketResult>"
#define S3_KEY(name)   "<Contents><Key>" name "</Key><Size>3</Size></Contents>"
#define S3_ABOVE(name) "<CommonPrefixes><Prefix>" name "</Prefix></CommonPrefixes>"
#define S3_ERROR(code) "<Error><Code>" code "</Code><Message>words</Message></Error>"

static void answer_next(int status, const char *body)
{
	assert_true(n_answers < array_size(answers));
	answers[n_answers++] = (struct answer){.reply = {.status = status}, .body = body};
}

/* What was asked since the last call of this function is WANT. */
static void assert_asked(const char *want)
{
	assert_int_equal(n_asked, n_answers);
	assert_string_equal(asked ? asked : "", want);
	free(take_ptr(asked));
	n_asked = n_answers = 0;
}

static void assert_archive(const char *endpoint)
{
	char *text = NULL;
	int err = archive_new(loop,
			      &(struct archive_address){.where = "s3://bucket/pre",
							.endpoint = endpoint},
			      "me", &archive, &text);

	if (err)
		fail_msg("%s", text);
}

static int begin_s3(void **state)
{
	n_asked = n_answers = 0;
	setup_started(state);
	assert_archive("http://server");
	return 0;
}

static void stop_archive(void)
{
	sem_t stopped;

	sem_init(&stopped, 0, 0);
	call(stop, &stopped);
	sem_wait_or_fail(&stopped);
	archive_free(take_ptr(archive));
}

static int end_s3(void **state)
{
	stop_archive();
	free(take_ptr(asked));
	return teardown(state);
}

/* What a call has ended with, and (malloc'ed) what it says. */
static int get_err(char **ret_text)
{
	struct call c = {.name = "a/b", .n = 9};

	begin(&c, get);
	sem_wait_or_fail(&c.done);
	free(c.got);
	*ret_text = c.text;
	return c.err;
}

static void assert_refused(int err, const char *text)
{
	cleanup_free char *said = NULL, *want = text_print("s3://bucket/pre/a/b: %s", text);

	assert_int_equal(get_err(&said), err);
	assert_string_equal(said, want);
	n_asked = n_answers = 0;
	free(take_ptr(asked));
}

static void test_put(void **state)
{
	answer_next(200, "");
	assert_int_equal(do_put("a/b c", "x"), 0);
	assert_asked("PUT /bucket/pre/a/b%20c\nContent-Type: application/octet-stream\n"
		     "x-amz-content-sha256: " SHA_X "\naws:amz:us-east-1:s3 by id\n");
	/* With TLS the bytes are not signed. */
	stop_archive();
	assert_archive("https://server");
	answer_next(200, "");
	assert_int_equal(do_put("a/b", "x"), 0);
	assert_asked("PUT /bucket/pre/a/b\nContent-Type: application/octet-stream\n"
		     "x-amz-content-sha256: UNSIGNED-PAYLOAD\naws:amz:us-east-1:s3 by id\n");
}

static void test_get(void **state)
{
	answer_next(206, "defgh");
	assert_get("a/b", 3, 5, 0, "defgh");
	assert_asked("GET /bucket/pre/a/b\nRange: bytes=3-7\nx-amz-content-sha256: " EMPTY
		     "\naws:amz:us-east-1:s3 by id\n");
	/* A server that knows no ranges sends the whole object. */
	answer_next(200, "abcdefghijk");
	assert_get("a/b", 3, 5, 0, "defgh");
	answer_next(200, "ab");
	assert_get("a/b", 3, 5, 0, "");
	/* The object has no byte from there on. */
	answer_next(416, S3_ERROR("InvalidRange"));
	assert_get("a/b", 3, 5, 0, "");
	n_asked = n_answers = 0;
	answer_next(404, S3_ERROR("NoSuchKey"));
	assert_get("a/b", 0, 5, -ENOENT, "");
}

#define ASKED_LIST "GET /bucket?delimiter=%2F&list-type=2&max-keys=1000&prefix=pre%2Fa%2F"
#define ASKED_REST "\nx-amz-content-sha256: " EMPTY "\naws:amz:us-east-1:s3 by id\n"

static void test_list(void **state)
{
	struct call c = {.name = "a/"};

	/* What is not an object below this name is left out. */
	answer_next(200, S3_LIST("false", S3_KEY("pre/a/x") S3_ABOVE("pre/a/d/") S3_KEY("pre/a/")
						  S3_KEY("pre/a/.new") S3_KEY("other/a/y")
							  S3_KEY("pre/b/y")));
	assert_list("a/", NULL, "d/ 0\nx 3\n");
	assert_asked(ASKED_LIST ASKED_REST);
	/* A server whose list begins with the very name behind which it was to begin. */
	answer_next(200, S3_LIST("false", S3_ABOVE("pre/a/d/") S3_KEY("pre/a/x")));
	assert_list("a/", "d/", "x 3\n");
	assert_asked(ASKED_LIST "&start-after=pre%2Fa%2Fd%2F%7F" ASKED_REST);
	answer_next(200, S3_LIST("true", S3_KEY("pre/a/x") S3_KEY("pre/a/y")));
	c.after = "x";
	begin(&c, list);
	sem_wait_or_fail(&c.done);
	assert_true(c.more);
	assert_string_equal(c.got, "y 3\n");
	finish(&c);
	assert_asked(ASKED_LIST "&start-after=pre%2Fa%2Fx" ASKED_REST);
}

/* When an answer has nothing that is shown, the next part is asked for. */
static void test_list_of_others(void **state)
{
	answer_next(200, S3_LIST("true", S3_KEY("pre/a/.x") S3_ABOVE("pre/a/.y/")));
	answer_next(200, S3_LIST("true", S3_KEY("pre/a/.z")));
	answer_next(200, S3_LIST("false", S3_KEY("pre/a/x")));
	assert_list("a/", NULL, "x 3\n");
	assert_asked(ASKED_LIST ASKED_REST ASKED_LIST
		     "&start-after=pre%2Fa%2F.y%2F%7F" ASKED_REST ASKED_LIST
		     "&start-after=pre%2Fa%2F.z" ASKED_REST);
}

static void test_no_list(void **state)
{
	struct call c = {.name = "a/"};

	answer_next(200, "<html></html>");
	begin(&c, list);
	sem_wait_or_fail(&c.done);
	assert_int_equal(c.err, -EIO);
	assert_string_equal(c.text, "s3://bucket/pre/a/: its list is none of S3");
	finish(&c);
}

static void test_refused(void **state)
{
	static const struct {
		int status;
		const char *body;
		int err;
		const char *text;
	} cases[] = {
		{404, S3_ERROR("NoSuchBucket"), -EHOSTUNREACH, "NoSuchBucket: words"},
		{403, S3_ERROR("QuotaExceeded"), -ENOSPC, "QuotaExceeded: words"},
		{507, S3_ERROR("Full"), -ENOSPC, "Full: words"},
		{400, S3_ERROR("ExpiredToken"), -EACCES, "ExpiredToken: words"},
		{403, S3_ERROR("AccessDenied"), -EACCES, "AccessDenied: words"},
		{500, S3_ERROR("InternalError"), -EIO, "InternalError: words"},
		{403, "no", -EACCES,
		 "HTTP status 403, with no word of S3: is http://server one of its servers?"},
	};
	static const int errs[][2] = {{-ETIMEDOUT, -ETIMEDOUT},
				      {-EHOSTUNREACH, -EHOSTUNREACH},
				      {-EFBIG, -EIO}};

	for (size_t i = 0; i < array_size(cases); i++) {
		answer_next(cases[i].status, cases[i].body);
		assert_refused(cases[i].err, cases[i].text);
	}
	for (size_t i = 0; i < array_size(errs); i++) {
		answer_next(0, "");
		answers[0].reply.err = errs[i][0];
		assert_refused(errs[i][1], "a broken line");
	}
	/* The message says what the user has to do. */
	answer_next(301, S3_ERROR("PermanentRedirect"));
	answers[0].reply.wanted = "eu-west-1";
	assert_refused(-EIO, "the bucket is in another region: -o region=eu-west-1");
	answer_next(301, S3_ERROR("PermanentRedirect"));
	answers[0].reply.wanted = "us-east-1";
	assert_refused(-EIO, "PermanentRedirect: words");
}

static void test_skewed(void **state)
{
	cleanup_free char *said = NULL;

	answer_next(403, S3_ERROR("RequestTimeTooSkewed"));
	answers[0].reply.date = loop_time_ns() / 1000000000 + 100000;
	assert_int_equal(get_err(&said), -EACCES);
	assert_non_null(strstr(said, " s behind that of the server; set it right"));
	n_asked = n_answers = 0;
	answer_next(403, S3_ERROR("RequestTimeTooSkewed"));
	answers[0].reply.date = 1;
	free(take_ptr(said));
	assert_int_equal(get_err(&said), -EACCES);
	assert_non_null(strstr(said, " s before that of the server; set it right"));
}

/* A server that wants to be left alone for a time is not asked before that is over. */
static void test_left_alone(void **state)
{
	answer_next(503, S3_ERROR("SlowDown"));
	answers[0].reply.wait_ms = 5000;
	assert_refused(-EIO, "SlowDown: words");
	assert_refused(-EIO, "the server has asked to be left alone for a while");
	clock_pass(loop, 6);
	answer_next(206, "x");
	assert_get("a/b", 0, 5, 0, "x");
}

static void write_keys(const char *id)
{
	cleanup_free char *text = text_print("[default]\naws_access_key_id = %s\n"
					     "aws_secret_access_key = secret\n",
					     id);

	assert_int_equal(file_write("/tmp", keys_file + strlen("/tmp/"), text, strlen(text)), 0);
}

/* When a server refuses the keys, they are read again, and the request is sent once more with the new ones. */
static void test_other_keys(void **state)
{
	stop_archive();
	unsetenv("AWS_ACCESS_KEY_ID");
	unsetenv("AWS_SECRET_ACCESS_KEY");
	write_keys("old");
	assert_archive("http://server");
	answer_next(206, "x");
	assert_get("a/b", 0, 5, 0, "x");
	assert_non_null(strstr(asked, " by old\n"));
	n_asked = n_answers = 0;
	free(take_ptr(asked));
	write_keys("new");
	answer_next(403, S3_ERROR("InvalidAccessKeyId"));
	answer_next(206, "x");
	assert_get("a/b", 0, 5, 0, "x");
	assert_non_null(strstr(asked, " by old\n"));
	assert_non_null(strstr(asked, " by new\n"));
	n_asked = n_answers = 0;
	/* Keys are not read again all the time, and no request is sent a third time. */
	answer_next(403, S3_ERROR("InvalidAccessKeyId"));
	assert_refused(-EACCES, "InvalidAccessKeyId: words");
	clock_pass(loop, 6);
	answer_next(403, S3_ERROR("InvalidAccessKeyId"));
	answer_next(403, S3_ERROR("InvalidAccessKeyId"));
	answers[1].late = 6;
	assert_refused(-EACCES, "InvalidAccessKeyId: words");
	setenv("AWS_ACCESS_KEY_ID", "id", 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_put, begin_s3, end_s3),
		cmocka_unit_test_setup_teardown(test_get, begin_s3, end_s3),
		cmocka_unit_test_setup_teardown(test_list, begin_s3, end_s3),
		cmocka_unit_test_setup_teardown(test_list_of_others, begin_s3, end_s3),
		cmocka_unit_test_setup_teardown(test_no_list, begin_s3, end_s3),
		cmocka_unit_test_setup_teardown(test_refused, begin_s3, end_s3),
		cmocka_unit_test_setup_teardown(test_skewed, begin_s3, end_s3),
		cmocka_unit_test_setup_teardown(test_left_alone, begin_s3, end_s3),
		cmocka_unit_test_setup_teardown(test_other_keys, begin_s3, end_s3),
	};
	int failed;

	close(mkstemp(keys_file));
	setenv("AWS_SHARED_CREDENTIALS_FILE", keys_file, 1);
	setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
	setenv("AWS_ACCESS_KEY_ID", "id", 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(keys_file);
	return failed;
}
