/* SPDX-License-Identifier: MIT */
/*
 * When metrics.k8s.io is asked, and how seldom. The test plays the server, the world and the watches, and lets time
 * pass.
 */
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

#include <errno.h>

#include "backend/base/diag.h"
#include "backend/kube/samples.h"
#include "spec/base/mem.h"

#define GROUP	"{\"versions\":[{\"groupVersion\":\"metrics.k8s.io/v1beta1\"}]}"
#define MINUTE	60000
#define REFUSED "forbidden"

static struct {
	struct samples *l;
	int64_t stale_since;
	struct world_job job;
} rig;

/* --- world.h, watches.h --- */

const struct world_job *world_sample(struct world *w, const char *json, size_t len)
{
	note("%.*s", (int)len, json);
	return strstr(json, "known") ? &rig.job : NULL;
}

int64_t watches_stale_since(struct watches *w)
{
	return rig.stale_since;
}

void watches_print_refused(struct watches_refused *list, const char *verb, const char *resource,
			   const char *cost, const char *answer)
{
	note("%s %s", verb, resource);
}

/* --- the test's side --- */

static void on_sampled(void *data, const struct world_job *job)
{
	assert_ptr_equal(job, &rig.job);
	note("sampled");
}

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	forget_noted();
	diag_setup(DIAG_DEBUG, false);
	rig.l = samples_new(&(struct samples_config){.namespace = "ns", .sampled = on_sampled});
	return 0;
}

static int teardown(void **state)
{
	fake_run();
	samples_stop(rig.l);
	assert_null(fake.timers);
	assert_null(fake.requests);
	samples_free(rig.l);
	return 0;
}

static void read_it(void)
{
	samples_wanted(rig.l);
	samples_wanted(rig.l);
	fake_run();
}

/* The only request under way asks for PATH; NULL: there is none. */
static struct http_request *asked(const char *path)
{
	struct http_request *rq = fake.requests;

	if (!path) {
		assert_null(rq);
		return NULL;
	}
	assert_non_null(rq);
	assert_null(rq->next);
	assert_string_equal(rq->path, path);
	return rq;
}

#define asks_group() asked("/apis/metrics.k8s.io")
#define asks_list()  asked("/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods")

static void list(const char *items)
{
	cleanup_free char *body = text_print("{\"metadata\":{},\"items\":[%s]}", items);

	fake_answer(asks_list(), 200, body);
}

/* metrics.k8s.io is asked, and has answered once. */
static void begin(void)
{
	samples_set_running(rig.l, true, true);
	fake_answer(asks_group(), 200, GROUP);
	list("");
}

/* What .kxfs/info says has PART. */
static void says(const char *part)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	samples_info(rig.l, out);
	fclose(out);
	if (!strstr(text, part))
		fail_msg("not \"%s\": %s", part, text);
	free(text);
}

/* Nothing is asked while nothing runs, or while nobody wants to know. */
static void test_wanted(void **state)
{
	says("usage: null\n");
	read_it();
	asked(NULL);
	samples_set_running(rig.l, true, false);
	fake_answer(asks_group(), 200, GROUP);
	list("{\"metadata\":{\"name\":\"known\"},\"kind\":\"K\"},{\"metadata\":{\"name\":\"other\"}}");
	assert_done(
		"{\"metadata\":{\"name\":\"known\"}}, sampled, {\"metadata\":{\"name\":\"other\"}}");
	says("usage: metrics.k8s.io/v1beta1\n");
	samples_set_running(rig.l, false, false);
	fake_pass(MINUTE);
	asked(NULL);
	assert_null(fake.timers);
	samples_set_running(rig.l, true, false);
	list("");
}

/*
 * metrics.k8s.io is asked every 15 seconds: for five minutes after somebody has read, or as long as what runs is
 * captured.
 */
static void test_how_often(void **state)
{
	samples_set_running(rig.l, true, false);
	asked(NULL);
	read_it();
	fake_answer(asks_group(), 200, GROUP);
	list("");
	for (int i = 1; i < 20; i++) {
		fake_pass(14999);
		asked(NULL);
		fake_pass(1);
		list("");
	}
	fake_pass(MINUTE);
	asked(NULL);
	assert_null(fake.timers);
	read_it();
	list("");
	fake_pass(5000);
	read_it();
	asked(NULL);
	samples_set_running(rig.l, true, true);
	for (int i = 0; i < 40; i++) {
		fake_pass(15000);
		list("");
	}
	samples_set_running(rig.l, true, false);
	fake_pass(MINUTE);
	asked(NULL);
}

/* A server that does not tell is asked once, and again after ten minutes, whoever reads meanwhile. */
static void expect_silence(void)
{
	for (int i = 0; i < 9; i++) {
		fake_pass(MINUTE);
		read_it();
		samples_set_running(rig.l, false, false);
		samples_set_running(rig.l, true, true);
		asked(NULL);
	}
	fake_pass(MINUTE - 1);
	asked(NULL);
	fake_pass(1);
}

static void test_absent(void **state)
{
	samples_set_running(rig.l, true, true);
	fake_answer(asks_group(), 404, "404 page not found");
	says("usage: null\nusage_failed: \"the cluster does not serve metrics.k8s.io");
	expect_silence();
	fake_answer(asks_group(), 200, "{\"versions\":[{\"groupVersion\":\"metrics.k8s.io/v7\"}]}");
	says("usage_failed");
	expect_silence();
	fake_answer(asks_group(), 200, GROUP);
	list("");
	says("usage: metrics.k8s.io/v1beta1\n");
}

static void test_forbidden(void **state)
{
	struct watches_refused refused = {0};

	samples_set_running(rig.l, true, true);
	fake_answer(asks_group(), 200, GROUP);
	fake_answer(asks_list(), 403, REFUSED);
	says("usage: null\n");
	samples_refused(rig.l, &refused);
	assert_done("list pods.metrics.k8s.io");
	expect_silence();
	fake_answer(asks_group(), 200, GROUP);
	list("");
	samples_refused(rig.l, &refused);
	assert_done("");
}

/* The same when the right is taken away. */
static void test_forbidden_later(void **state)
{
	begin();
	fake_pass(15000);
	fake_answer(asks_list(), 403, REFUSED);
	expect_silence();
	asks_group();
}

/*
 * When the API was never there, it is not asked for again soon; when it was there, it is asked for twice more, since it
 * may be back soon.
 */
static void test_away(void **state)
{
	samples_set_running(rig.l, true, true);
	fake_answer(asks_group(), 200, GROUP);
	fake_answer(asks_list(), 503, "");
	expect_silence();
	fake_answer(asks_group(), 200, GROUP);
	list("");
	for (int i = 0; i < 2; i++) {
		fake_pass(15000);
		fake_answer(asks_list(), 503, "");
		says("usage: metrics.k8s.io/v1beta1\n");
	}
	fake_pass(15000);
	list("");
	for (int i = 0; i < 3; i++) {
		fake_pass(15000);
		fake_break(asks_list(), -ETIMEDOUT, true);
	}
	says("usage: null\nusage_failed: ");
	expect_silence();
	asks_group();
}

/* That the whole server is away says nothing about the API. */
static void test_no_server(void **state)
{
	begin();
	rig.stale_since = 77;
	for (int i = 0; i < 20; i++) {
		fake_pass(15000);
		fake_break(asks_list(), -EHOSTUNREACH, false);
	}
	says("usage: metrics.k8s.io/v1beta1\n");
	fake_pass(15000);
	list("");
}

/* A reply that is no list, or not whole, still tells of the objects that it has. */
static void test_cut(void **state)
{
	begin();
	fake_pass(15000);
	fake_answer(asks_list(), 200,
		    "{\"metadata\":{},\"items\":[{\"metadata\":{\"name\":\"known\"}},");
	assert_done("{\"metadata\":{\"name\":\"known\"}}, sampled");
	fake_pass(15000);
	fake_answer(asks_list(), 200, "no JSON");
	fake_pass(15000);
	list("");
	assert_done("");
}

/* At the end the request that is under way is given up. */
static void test_stop(void **state)
{
	begin();
	fake_pass(15000);
	asks_list();
	samples_stop(rig.l);
	read_it();
	asked(NULL);
}

int main(void)
{
#define SAMPLES_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		SAMPLES_TEST(test_wanted),
		SAMPLES_TEST(test_how_often),
		SAMPLES_TEST(test_absent),
		SAMPLES_TEST(test_forbidden),
		SAMPLES_TEST(test_forbidden_later),
		SAMPLES_TEST(test_away),
		SAMPLES_TEST(test_no_server),
		SAMPLES_TEST(test_cut),
		SAMPLES_TEST(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
