/* SPDX-License-Identifier: MIT */
/*
 * How kxfs finds Kueue in the server's list of API groups, and when it requests positions. The test
 * plays the server, the watches and the world.
 */
#include "backend/kube/kueue.h"
#include "spec/base/mem.h"
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

#define GROUPS(list) "{\"groups\":[" list "]}"
#define GROUP(name, v)                                                                             \
	"{\"name\":\"" name "\",\"versions\":[{\"groupVersion\":\"" name "/" v "\"}]}"
#define KUEUE(v)   GROUP("kueue.x-k8s.io", v)
#define VISIBILITY GROUP("visibility.kueue.x-k8s.io", "v1beta2")

static struct kueue *kueue;

/* --- watches.h, world.h --- */

void watches_set_kueue(struct watches *w, const char *version)
{
	note("%s", version);
}

void world_set_positions(struct world *w, const char *name, const struct spec_queue_position *v,
			 size_t n)
{
	note("%zu in %s", n, name ? name : "all");
}

static bool nobody_waits, away; /* else jobs wait in the queues "a" and "b" */

const char *world_next_queue(const struct world *w, const char *after)
{
	return nobody_waits ? NULL : !*after ? "a" : streq(after, "a") ? "b" : NULL;
}

void world_set_kueue(struct world *w, enum world_kueue fact, bool now)
{
	away = fact == WORLD_KUEUE_AWAY ? now : away;
	if (now)
		note(fact == WORLD_KUEUE_AWAY ? "away" : "absent");
}

void watches_refuse(struct watches *w, unsigned place, const char *verb, const char *resource,
		    const char *cost, const char *answer)
{
	if (answer)
		note("refused: %s %s", verb, resource);
}

/* --- the tests --- */

static int setup(void **state)
{
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	forget_noted();
	nobody_waits = away = false;
	kueue = kueue_new(&(struct watches_access){.namespace = "team"});
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

static void serve(const char *groups)
{
	kueue_served(kueue, groups, strlen(groups));
}

static void test_served(void **state)
{
	serve(GROUPS(KUEUE("v1beta2")));
	assert_done("kueue.x-k8s.io/v1beta2");
	assert_string_equal(kueue_version(kueue), "kueue.x-k8s.io/v1beta2");
	/* The watches use the first version, so kxfs ignores others. */
	serve(GROUPS(KUEUE("v1beta1")));
	serve(GROUPS(GROUP("apps", "v1")));
	assert_done("");
	assert_string_equal(kueue_version(kueue), "kueue.x-k8s.io/v1beta2");
}

/* Kueue may be installed later. A version that kxfs does not know does not mean that it is absent. */
static void test_absent(void **state)
{
	serve(GROUPS(KUEUE("v9")));
	assert_done("");
	serve(GROUPS(GROUP("apps", "v1")));
	assert_done("absent");
	assert_null(kueue_version(kueue));
	serve(GROUPS(KUEUE("v1beta1")));
	assert_done("kueue.x-k8s.io/v1beta1");
}

/* Return the request for the positions in QUEUE, or NULL. */
static struct http_request *asks(const char *queue)
{
	cleanup_free char *path = text_print("/apis/visibility.kueue.x-k8s.io/v1beta2/namespaces/"
					     "team/localqueues/%s/pendingworkloads",
					     queue);

	fake_run();
	return fake_find(path);
}

#define NOBODY "{\"items\":[]}"

static void read_positions(void)
{
	kueue_wanted(kueue);
	assert_null(asks("b"));
}

/* kxfs requests positions only if the server has the API that returns them. */
static void test_positions(void **state)
{
	serve(GROUPS(KUEUE("v1beta2")));
	kueue_wanted(kueue);
	assert_null(asks("a"));
	serve(GROUPS(KUEUE("v1beta2") "," VISIBILITY));
	for (int i = 0; i < 2; i++) {
		read_positions();
		fake_answer(asks("a"), 200, NOBODY);
		fake_pass(200);
		fake_answer(asks("b"), 404, "{}");
		assert_done(i ? "0 in a, 0 in b" : "kueue.x-k8s.io/v1beta2, 0 in a, 0 in b");
		fake_pass(5000);
		assert_null(fake.requests);
		fake_pass(200);
	}
	/* 30 s after the last read, kxfs stops, and forgets the positions. */
	for (int i = 0; fake.requests; i++) {
		assert_true(i < 10);
		fake_answer(fake.requests, 200, NOBODY);
		fake_pass(i % 2 ? 5200 : 200);
	}
	assert_non_null(strstr(noted, "0 in all"));
	assert_null(fake.timers);
	read_positions();
	assert_non_null(asks("a"));
}

/* After a failure, kxfs forgets the positions, and pauses. */
static void test_failures(void **state)
{
	serve(GROUPS(KUEUE("v1beta2") "," VISIBILITY));
	read_positions();
	fake_answer(asks("a"), 503, "");
	assert_done("kueue.x-k8s.io/v1beta2, 0 in a, away");
	fake_pass(14900);
	assert_null(fake.requests);
	read_positions();
	fake_pass(100);
	fake_answer(asks("b"), 403, "{}");
	assert_done("0 in b, "
		    "refused: get localqueues/pendingworkloads.visibility.kueue.x-k8s.io");
	fake_pass(299900);
	assert_null(fake.requests);
	read_positions();
	fake_pass(5200);
	fake_answer(asks("a"), 200, NOBODY);
	assert_done("0 in a");
}

/* If no job waits any more, no reply would show that Kueue is back. So kxfs forgets that it was away. */
static void test_nobody_waits(void **state)
{
	serve(GROUPS(KUEUE("v1beta2") "," VISIBILITY));
	read_positions();
	fake_answer(asks("a"), 503, "");
	assert_true(away);
	nobody_waits = true;
	fake_pass(15000);
	kueue_wanted(kueue);
	fake_pass(5000);
	assert_false(away);
	assert_null(fake.requests);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_served, setup, teardown),
		cmocka_unit_test_setup_teardown(test_absent, setup, teardown),
		cmocka_unit_test_setup_teardown(test_positions, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nobody_waits, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
