/* SPDX-License-Identifier: MIT */
/*
 * How kxfs finds out whether the cluster has Kueue. The test plays the server, the watches and the
 * world.
 */
#include "backend/kube/kueue.h"
#include "spec/base/mem.h"
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

#define GROUP	 "{\"versions\":[{\"groupVersion\":\"kueue.x-k8s.io/v1beta2\"}]}"
#define A_MINUTE 60000

static struct kueue *kueue;

/* --- watches.h, world.h --- */

void watches_await_kueue(struct watches *w)
{
	note("await");
}

void watches_start_kueue(struct watches *w, const char *version)
{
	note("start %s", version ? version : "none");
}

/* These tests never read queue positions. */
void world_set_positions(struct world *w, const char *name, const struct spec_queue_position *v,
			 size_t n)
{
	fail();
}

void world_set_kueue(struct world *w, enum world_kueue fact, bool now)
{
	assert_int_not_equal(fact, WORLD_KUEUE_AWAY);
	if (now)
		note("absent");
}

void watches_refuse(struct watches *w, unsigned place, const char *verb, const char *resource,
		    const char *cost, const char *answer)
{
	fail();
}

/* --- the tests --- */

static int setup(void **state)
{
	forget_noted();
	kueue = kueue_new(&(struct watches_access){.namespace = "team"});
	kueue_start(kueue);
	assert_done("await");
	return 0;
}

static int teardown(void **state)
{
	kueue_stop(kueue);
	kueue_free(kueue);
	assert_null(fake.requests);
	assert_null(fake.timers);
	return 0;
}

static void answer(int status, const char *body)
{
	struct http_request *rq = fake_find("/apis/kueue.x-k8s.io");

	assert_non_null(rq);
	fake_answer(rq, status, body);
}

static void expect_served(void)
{
	answer(200, GROUP);
	assert_done("start kueue.x-k8s.io/v1beta2");
	assert_string_equal(kueue_version(kueue), "kueue.x-k8s.io/v1beta2");
}

static void test_served(void **state)
{
	expect_served();
	fake_pass(10 * A_MINUTE);
	assert_null(fake.requests);
}

static void test_absent(void **state)
{
	answer(404, "404 page not found");
	assert_done("absent, start none");
	fake_pass(9 * A_MINUTE);
	assert_null(fake.requests);
	assert_null(kueue_version(kueue));
	/* Kueue may be installed later. */
	fake_pass(A_MINUTE);
	answer(404, "404 page not found");
	assert_done("absent, start none");
	fake_pass(10 * A_MINUTE);
	expect_served();
}

/* A failure, a reply of a proxy, and a refusal do not prove that there is no Kueue. */
static void test_asked_again(void **state)
{
	answer(503, "upstream connect error");
	assert_done("start none");
	fake_pass(A_MINUTE);
	answer(200, "<html>Please log in</html>");
	assert_done("start none");
	fake_pass(A_MINUTE);
	answer(403, "{}");
	assert_done("start none");
	fake_pass(5 * A_MINUTE);
	expect_served();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_served, setup, teardown),
		cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_asked_again, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
