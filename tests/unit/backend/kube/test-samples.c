/* SPDX-License-Identifier: MIT */
/*
 * When and how often kxfs requests metrics.k8s.io. The test plays the server, the world and the
 * watches, and lets time pass.
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

void watches_refuse(struct watches *w, unsigned place, const char *verb, const char *resource,
		    const char *cost, const char *answer)
{
	if (answer)
		note("refused: %s %s", verb, resource);
}

/* --- test helpers --- */

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
	rig.l = samples_new(&(struct watches_access){.namespace = "ns"}, on_sampled, NULL);
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

/*
 * Return the only request under way, whose path must be PATH. If PATH is NULL, assert that there is
 * no request.
 */
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

/* Make kxfs request metrics.k8s.io, and answer once. */
static void begin(void)
{
	samples_set_running(rig.l, true, true);
	fake_answer(asks_group(), 200, GROUP);
	list("");
}

/* Assert that .kxfs/info contains PART. */
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

/*
 * kxfs requests metrics.k8s.io every 15 seconds while jobs are running and somebody reads the
 * usage, or the running jobs are captured. Reads have an effect for five minutes.
 */
static void test_how_often(void **state)
{
	says("usage: null\n");
	read_it();
	asked(NULL); /* no job is running */
	samples_set_running(rig.l, true, false);
	fake_answer(asks_group(), 200, GROUP);
	list("{\"metadata\":{\"name\":\"known\"}},{\"metadata\":{\"name\":\"other\"}}");
	assert_done(
		"{\"metadata\":{\"name\":\"known\"}}, sampled, {\"metadata\":{\"name\":\"other\"}}");
	says("usage: metrics.k8s.io/v1beta1\n");
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
	samples_set_running(rig.l, false, false);
	fake_pass(MINUTE);
	asked(NULL);
	samples_set_running(rig.l, true, false);
	read_it();
	list("");
}

/* Assert that kxfs requests nothing for ten minutes after a refusal, even if somebody reads. */
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

/* Replies that give no samples. The first ones are to requests for the API group. */
static void test_refused(void **state)
{
	static const struct {
		int group, list;
		const char *body, *info, *done;
	} rows[] = {
		{404, 0, "404 page not found",
		 "usage: null\nusage_failed: \"the cluster does not serve metrics.k8s.io", ""},
		{200, 0, "{\"versions\":[{\"groupVersion\":\"metrics.k8s.io/v7\"}]}",
		 "usage_failed", ""},
		{200, 403, REFUSED, "usage: null\n", "refused: list pods.metrics.k8s.io"},
		{200, 503, "", "usage_failed", ""},
	};

	samples_set_running(rig.l, true, true);
	for (size_t i = 0; i < array_size(rows); i++) {
		if (rows[i].list) {
			fake_answer(asks_group(), 200, GROUP);
			fake_answer(asks_list(), rows[i].list, rows[i].body);
		} else {
			fake_answer(asks_group(), rows[i].group, rows[i].body);
		}
		says(rows[i].info);
		assert_done(rows[i].done);
		expect_silence();
	}
	fake_answer(asks_group(), 200, GROUP);
	list("");
	says("usage: metrics.k8s.io/v1beta1\n");
	/* The user loses the right. */
	fake_pass(15000);
	fake_answer(asks_list(), 403, REFUSED);
	expect_silence();
	asks_group();
}

/* If the API existed before, kxfs makes two more requests, because it may soon be back. */
static void test_away(void **state)
{
	begin();
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

/* If the whole server is unreachable, nothing is known about this API. */
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

/*
 * From a reply that is not a list, or is truncated, kxfs still uses the objects that it contains.
 */
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

int main(void)
{
#define SAMPLES_TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		SAMPLES_TEST(test_how_often), SAMPLES_TEST(test_refused), SAMPLES_TEST(test_away),
		SAMPLES_TEST(test_no_server), SAMPLES_TEST(test_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
