/* SPDX-License-Identifier: MIT */
/* backend/archive/s3_keys.h: where keys are from, when they are got anew, and what failures lead to. */
#include "tests/unit/backend/archive/s3_rig.h"

#include "backend/archive/s3_keys.h"

static struct s3_keys *keys;

/* What those who asked were told last, and how many. */
static struct {
	unsigned n;
	int err;
	char *id, *secret, *token, *text;
} told;

static void on_keys(void *data, int err, const struct spec_s3_keys *k, const char *text)
{
	told.n++;
	told.err = err;
	text_set(&told.id, "%s", err ? "" : k->id);
	text_set(&told.secret, "%s", err ? "" : k->secret);
	text_set(&told.token, "%s", err ? "" : k->token);
	text_set(&told.text, "%s", text);
}

static void begin(void)
{
	cleanup_free char *why = NULL;

	assert_int_equal(s3_keys_new(NULL, "eu-central-1", "", &keys, &why), 0);
	assert_null(why);
}

static void refused(int err, const char *part)
{
	cleanup_free char *why = NULL;

	assert_int_equal(s3_keys_new(NULL, "eu-central-1", "", &keys, &why), err);
	assert_non_null(strstr(why, part));
	keys = NULL;
}

static void ask(void)
{
	unsigned before = told.n;

	s3_keys_get(keys, on_keys, NULL);
	assert_int_equal(told.n, before); /* never from within */
	fake_run();
}

static void expect(const char *id)
{
	unsigned before = told.n;

	ask();
	assert_int_equal(told.n, before + 1);
	assert_string_equal(told.text, "");
	assert_int_equal(told.err, 0);
	assert_string_equal(told.id, id);
}

static void fails(int err, const char *part)
{
	ask();
	assert_int_equal(told.err, err);
	assert_non_null(strstr(told.text, part));
	assert_null(strstr(told.text, "SECRET"));
}

static bool refuse(const char *id, const char *secret, const char *token)
{
	struct spec_s3_keys k cleanup(spec_s3_keys_clear) = {text_copy(id), text_copy(secret),
							     text_copy(token)};

	return s3_keys_refused(keys, &k);
}

static void on_stopped(void *data)
{
	*(bool *)data = true;
}

static int end(void **state)
{
	bool stopped = false;

	if (keys) {
		s3_keys_stop(keys, on_stopped, &stopped);
		fake_run();
		assert_true(stopped);
		s3_keys_free(take_ptr(keys));
	}
	free(take_ptr(told.id));
	free(take_ptr(told.secret));
	free(take_ptr(told.token));
	free(take_ptr(told.text));
	return rig_teardown(state);
}

/* --- the environment --- */

static void test_environment(void **state)
{
	setenv("AWS_ACCESS_KEY_ID", "AK", 1);
	refused(-EINVAL, "the environment");
	setenv("AWS_SECRET_ACCESS_KEY", "SECRET", 1);
	setenv("AWS_SESSION_TOKEN", "TOK\nEN", 1);
	refused(-EINVAL, "blanks or control");
	setenv("AWS_SESSION_TOKEN", "TOKEN", 1);
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE",
		  "[default]\naws_access_key_id = OTHER\naws_secret_access_key = s\n");
	begin();
	expect("AK");
	assert_string_equal(told.secret, "SECRET");
	assert_string_equal(told.token, "TOKEN");
	fake_pass(365u * 86400 * 1000);
	expect("AK");
	assert_false(refuse("AK", "SECRET", "TOKEN"));
}

/* --- the file --- */

#define DEFAULT(id) "[default]\naws_access_key_id = " id "\naws_secret_access_key = SECRET\n"

static void test_file(void **state)
{
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE", DEFAULT("AK1"));
	begin();
	expect("AK1");
	/* It is read again a minute later, or when the server refuses what there is. */
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE", DEFAULT("AK2"));
	fake_pass(59000);
	expect("AK1");
	fake_pass(1001);
	expect("AK2");
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE", DEFAULT("AK3"));
	assert_true(refuse("AK2", "SECRET", ""));
	expect("AK3");
	/* Others are known by now; but those are not asked for again at once. */
	assert_true(refuse("AK2", "SECRET", ""));
	assert_false(refuse("AK3", "SECRET", ""));
	fake_pass(5000);
	assert_true(refuse("AK3", "SECRET", ""));
	/* What can't be read any more is used as it was. */
	rig_remove("credentials");
	fake_pass(60001);
	expect("AK3");
}

static void test_file_fails(void **state)
{
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE", DEFAULT("AK1"));
	setenv("AWS_PROFILE", "ada", 1);
	begin();
	fails(-EACCES, "no profile ada");
	/* A failure is the answer for 5 s. */
	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE",
		  "[ada]\naws_access_key_id = AK2\naws_secret_access_key = SECRET\n");
	fails(-EACCES, "no profile ada");
	fake_pass(5001);
	expect("AK2");
}

static void test_home(void **state)
{
	cleanup_free char *home = text_print("%s", rig_dir), *dir = text_print("%s/.aws", rig_dir);

	unsetenv("AWS_SHARED_CREDENTIALS_FILE");
	unsetenv("HOME");
	refused(-ENOKEY, "no keys");
	setenv("HOME", home, 1);
	begin();
	fails(-EACCES, "/.aws/credentials: No such file");
	assert_int_equal(mkdir(dir, 0700), 0);
	rig_write(".aws/credentials", "UNUSED", DEFAULT("AK1"));
	fake_pass(5001);
	expect("AK1");
}

/* Its disk hangs: who waits is told after 10 s; when it has come back that counts. */
static void test_file_hangs(void **state)
{
	struct fake_job *job;
	unsigned before = told.n;

	rig_write("credentials", "AWS_SHARED_CREDENTIALS_FILE", DEFAULT("AK1"));
	begin();
	s3_keys_get(keys, on_keys, NULL);
	assert_true(fake_step(&fake.posted));
	job = take_ptr(fake.pool);
	assert_non_null(job);
	s3_keys_get(keys, on_keys, NULL);
	fake_pass(10000);
	assert_int_equal(told.n, before + 2);
	assert_int_equal(told.err, -ETIMEDOUT);
	fails(-ETIMEDOUT, "not read within 10 s");
	DL_APPEND(fake.pool, job);
	fake_run();
	expect("AK1");
}

/* --- the token service --- */

#define ANSWER(id, end)                                                                            \
	"<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>"        \
	"<AccessKeyId>" id "</AccessKeyId><SecretAccessKey>SECRET</SecretAccessKey>"               \
	"<SessionToken>TOKEN</SessionToken><Expiration>" end "</Expiration></Credentials>"         \
	"</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>"
#define NOON 1795608000 /* 2026-11-25T12:00:00Z, by the service's clock, which is not ours */

static void token_environment(void)
{
	rig_write("token", "AWS_WEB_IDENTITY_TOKEN_FILE", " \n");
	rig_write("token", "AWS_WEB_IDENTITY_TOKEN_FILE", "JWT.SECRET\n");
	setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/kx", 1);
	begin();
}

/* The one question that is under way is answered with STATUS and BODY. */
static void answer(int status, const char *body)
{
	struct http_request *rq = fake.requests;

	assert_non_null(rq);
	assert_null(rq->next);
	assert_int_equal(rq->call.method, HTTP_POST);
	assert_string_equal(rq->path, "/");
	assert_string_equal(rq->call.type, "application/x-www-form-urlencoded");
	assert_null(rq->call.signature);
	assert_int_equal(rq->call.deadline_ms, 10000);
	assert_string_equal(rq->body,
			    "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn"
			    "%3Aaws%3Aiam%3A%3A1%3Arole%2Fkx&RoleSessionName=kxfs"
			    "&WebIdentityToken=JWT.SECRET");
	fake_end(rq, &(struct http_reply){.status = status, .body = body, .date = NOON});
	fake_run();
}

static void test_token(void **state)
{
	unsigned before = told.n;

	token_environment();
	ask();
	ask(); /* once for all who wait */
	assert_int_equal(fake.n_sent, 1);
	answer(200, ANSWER("ASIA1", "2026-11-25T13:00:00Z"));
	assert_int_equal(told.n, before + 2);
	assert_string_equal(told.id, "ASIA1");
	assert_string_equal(told.token, "TOKEN");
	/* They are good for an hour, and renewed 5 minutes before that. */
	fake_pass(54 * 60000);
	expect("ASIA1");
	assert_int_equal(fake.n_sent, 1);
	fake_pass(60001);
	ask();
	assert_int_equal(fake.n_sent, 2);
	/* The service fails: what there is is good for five minutes yet. */
	answer(503, "");
	assert_int_equal(told.err, 0);
	assert_string_equal(told.id, "ASIA1");
	fake_pass(5001);
	ask();
	answer(200, ANSWER("ASIA2", "2026-11-25T12:10:00Z"));
	assert_string_equal(told.id, "ASIA2");
	/* Of those that live shortly half the time is waited. */
	fake_pass(5 * 60000 - 1);
	expect("ASIA2");
	fake_pass(1);
	ask();
	fake_break(fake.requests, -EHOSTUNREACH, false);
	fake_run();
	assert_int_equal(told.err, 0);
	fake_pass(5 * 60000);
	ask();
	fake_break(fake.requests, -EHOSTUNREACH, false);
	fake_run();
	assert_int_equal(told.err, -EHOSTUNREACH);
	assert_string_equal(told.text, "it broke");
}

static void test_token_refused(void **state)
{
	token_environment();
	ask();
	answer(400, "<ErrorResponse><Error><Code>InvalidIdentityToken</Code><Message>JWT.SECRET"
		    "</Message></Error></ErrorResponse>");
	assert_int_equal(told.err, -EACCES);
	assert_string_equal(
		told.text,
		"AssumeRoleWithWebIdentity at https://sts.eu-central-1.amazonaws.com: 400 "
		"InvalidIdentityToken, the web identity token is not accepted");
	fake_pass(5001);
	ask();
	answer(404, "");
	assert_int_equal(told.err, -EACCES);
	fake_pass(5001);
	ask();
	answer(200, "<html/>");
	assert_int_equal(told.err, -EIO);
	fake_pass(5001);
	ask();
	answer(200, ANSWER("ASIA1", "2026-11-25T11:59:59Z")); /* over already */
	assert_int_equal(told.err, -EIO);
	fake_pass(5001);
	rig_write("token", "AWS_WEB_IDENTITY_TOKEN_FILE", "\n");
	fails(-EINVAL, "no token is in it");
}

static void test_token_service(void **state)
{
	rig_write("token", "AWS_WEB_IDENTITY_TOKEN_FILE", "JWT\n");
	setenv("AWS_ROLE_ARN", "r", 1);
	/* Whoever reads the token on its way has the role. */
	setenv("AWS_ENDPOINT_URL_STS", "http://sts.example.org:80", 1);
	refused(-EINVAL, "must be a URL with https");
	setenv("AWS_ENDPOINT_URL_STS", "http://localhost:7070", 1);
	begin();
}

/* Who waits when all ends is told nothing, whatever is under way. */
static void test_stop(void **state)
{
	unsigned before = told.n;

	token_environment();
	s3_keys_get(keys, on_keys, NULL);
	assert_true(fake_step(&fake.posted));
	end(NULL); /* the file is being read */
	rig_setup(NULL);
	token_environment();
	ask();
	end(NULL); /* the service is being asked */
	rig_setup(NULL);
	assert_int_equal(told.n, before);
	assert_null(fake.requests);
}

static int setup(void **state)
{
	fake.n_sent = 0;
	return rig_setup(state);
}

#define TEST(t) cmocka_unit_test_setup_teardown(test_##t, setup, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(environment),   TEST(file),	  TEST(file_fails),
		TEST(home),	     TEST(file_hangs),	  TEST(token),
		TEST(token_refused), TEST(token_service), TEST(stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
