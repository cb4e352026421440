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

#define GROUPS(v)                                                                                  \
	"{\"groups\":[{\"name\":\"metrics.k8s.io\",\"versions\":[{\"groupVersion\":"               \
	"\"metrics.k8s.io/" v "\"}]}]}"
#define MINUTE	60000
#define REFUSED "forbidden"

static struct {
	struct samples *l;
	bool runs, captured; /* what publish_runs returns */
	struct world_job job;
} rig;

/* --- world.h, publish.h, watches.h --- */

const struct world_job *world_sample(struct world *w, const char *json, size_t len)
{
	note("%.*s", (int)len, json);
	return strstr(json, "known") ? &rig.job : NULL;
}

bool publish_runs(const struct publish *p, bool captured)
{
	return captured ? rig.captured : rig.runs;
}

void publish_sampled(struct publish *p, const struct world_job *job)
{
	assert_ptr_equal(job, &rig.job);
	note("sampled");
}

void watches_refuse(struct watches *w, unsigned place, const char *verb, const char *resource,
		    const char *cost, const char *answer)
{
	if (answer)
		note("refused: %s %s", verb, resource);
}

/* --- test helpers --- */

/* Set whether jobs run. kxfs notices this in at most 15 seconds. */
static void set_running(bool any, bool captured)
{
	rig.runs = any;
	rig.captured = captured;
}

static void serve(const char *groups)
{
	samples_served(rig.l, groups, strlen(groups));
}

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	forget_noted();
	diag_setup(DIAG_DEBUG, false);
	rig.l = samples_new(&(struct watches_access){.namespace = "ns"}, NULL);
	serve(GROUPS("v1beta1"));
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

#define asks_list() asked("/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods")

static void list(const char *items)
{
	cleanup_free char *body = text_print("{\"metadata\":{},\"items\":[%s]}", items);

	fake_answer(asks_list(), 200, body);
}

/* Make kxfs request metrics.k8s.io, and answer once. */
static void begin(void)
{
	set_running(true, true);
	fake_pass(15000);
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

/* kxfs requests nothing while no job is running, or while nobody reads the usage. */
static void test_wanted(void **state)
{
	says("usage: null\n");
	read_it();
	asked(NULL);
	set_running(true, false);
	fake_pass(15000);
	list("{\"metadata\":{\"name\":\"known\"}},{\"metadata\":{\"name\":\"other\"}}");
	assert_done(
		"{\"metadata\":{\"name\":\"known\"}}, sampled, {\"metadata\":{\"name\":\"other\"}}");
	says("usage: metrics.k8s.io/v1beta1\n");
	set_running(false, false);
	fake_pass(MINUTE);
	asked(NULL);
	set_running(true, false);
	fake_pass(15000);
	list("");
}

/*
 * kxfs requests metrics.k8s.io every 15 seconds. It stops five minutes after the last read, unless
 * running jobs are captured.
 */
static void test_how_often(void **state)
{
	set_running(true, false);
	fake_pass(MINUTE);
	asked(NULL);
	read_it();
	list("");
	for (int i = 1; i < 20; i++) {
		fake_pass(14999);
		asked(NULL);
		fake_pass(1);
		list("");
	}
	fake_pass(MINUTE);
	asked(NULL);
	read_it();
	list("");
	fake_pass(5000);
	read_it();
	asked(NULL);
	set_running(true, true);
	fake_pass(10000);
	list("");
	for (int i = 0; i < 40; i++) {
		fake_pass(15000);
		list("");
	}
	set_running(true, false);
	fake_pass(MINUTE);
	asked(NULL);
}

/* Assert that kxfs requests nothing for ten minutes after a refusal, even if somebody reads. */
static void expect_silence(void)
{
	for (int i = 0; i < 9; i++) {
		fake_pass(MINUTE);
		read_it();
		asked(NULL);
	}
	fake_pass(MINUTE - 1);
	asked(NULL);
	fake_pass(1);
}

static void test_absent(void **state)
{
	serve("{\"groups\":[]}");
	set_running(true, true);
	says("usage: null\nusage_failed: \"the cluster does not serve metrics.k8s.io");
	fake_pass(MINUTE);
	asked(NULL);
	serve(GROUPS("v7"));
	says("usage_failed");
	fake_pass(MINUTE);
	asked(NULL);
	serve(GROUPS("v1beta1"));
	says("usage: null\n");
	list("");
	says("usage: metrics.k8s.io/v1beta1\n");
	/* A later survey shows that the metrics-server was removed. */
	serve("{\"groups\":[]}");
	says("usage: null\nusage_failed");
	fake_pass(MINUTE);
	asked(NULL);
}

static void test_forbidden(void **state)
{
	set_running(true, true);
	fake_pass(15000);
	fake_answer(asks_list(), 403, REFUSED);
	says("usage: null\n");
	assert_done("refused: list pods.metrics.k8s.io");
	expect_silence();
	list("");
	assert_done("");
}

/* If the user loses the right, kxfs requests nothing for ten minutes. */
static void test_forbidden_later(void **state)
{
	begin();
	fake_pass(15000);
	fake_answer(asks_list(), 403, REFUSED);
	expect_silence();
	asks_list();
}

/* If the metrics-server or the whole server is away, kxfs requests samples as often as before. */
static void test_away(void **state)
{
	begin();
	for (int i = 0; i < 3; i++) {
		fake_pass(15000);
		fake_answer(asks_list(), 503, "");
		says("usage: null\nusage_failed: ");
		fake_pass(15000);
		fake_break(asks_list(), -EHOSTUNREACH, false);
		says("usage: null\nusage_failed: ");
	}
	fake_pass(14999);
	asked(NULL);
	fake_pass(1);
	list("");
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

/* When the mount ends, the request under way is cancelled. */
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
		SAMPLES_TEST(test_cut),
		SAMPLES_TEST(test_stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
