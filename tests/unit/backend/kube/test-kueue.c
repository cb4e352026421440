/* SPDX-License-Identifier: MIT */
/*
 * How kxfs finds out whether the cluster has Kueue. The test plays the server, the watches and the
 * world.
 */
#include "backend/kube/kueue.h"
#include "spec/base/mem.h"
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/noted.h"

/* --- watches.h, world.h --- */

void watches_await_kueue(struct watches *w)
{
	note("await");
}

void watches_start_kueue(struct watches *w, const char *version)
{
	note("start %s", version ? version : "none");
}

/* The test never reads queue positions. */
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

/* --- the test --- */

/*
 * The replies to requests for Kueue's API group, and after how many minutes kxfs asks again. A
 * failure, a reply of a proxy, and a refusal do not prove that there is no Kueue. Kueue may be
 * installed later.
 */
static void test_found(void **state)
{
	static const struct {
		int status;
		const char *body, *done;
		unsigned minutes;
	} rows[] = {
		{503, "upstream connect error", "start none", 1},
		{200, "<html>Please log in</html>", "start none", 1},
		{403, "{}", "start none", 5},
		{404, "404 page not found", "absent, start none", 10},
		{404, "404 page not found", "absent, start none", 10},
		{200, "{\"versions\":[{\"groupVersion\":\"kueue.x-k8s.io/v1beta2\"}]}",
		 "start kueue.x-k8s.io/v1beta2", 0},
	};
	struct kueue *kueue = kueue_new(&(struct watches_access){.namespace = "team"});

	kueue_start(kueue);
	assert_done("await");
	for (size_t i = 0; i < array_size(rows); i++) {
		assert_null(kueue_version(kueue));
		assert_string_equal(fake.requests->path, "/apis/kueue.x-k8s.io");
		fake_answer(fake.requests, rows[i].status, rows[i].body);
		assert_done(rows[i].done);
		fake_pass(max_of(rows[i].minutes, 1u) * 60000 - 1);
		assert_null(fake.requests);
		fake_pass(1);
	}
	assert_string_equal(kueue_version(kueue), "kueue.x-k8s.io/v1beta2");
	assert_null(fake.requests);
	assert_null(fake.timers);
	kueue_stop(kueue);
	kueue_free(kueue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_found)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
