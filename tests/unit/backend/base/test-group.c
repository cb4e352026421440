/* SPDX-License-Identifier: MIT */
/* A group: who waits is called once, posted, when the last has left; also when nothing was under way. */
#include "backend/base/group.h"
#include "tests/unit/unit.h"

/* The loop's only part that a group uses: what is posted runs when the test lets it. */
static struct {
	loop_fn fn;
	void *data;
	unsigned n;
} posted;

void loop_post(struct loop *loop, loop_fn fn, void *data)
{
	posted.fn = fn;
	posted.data = data;
	posted.n++;
}

static void run_posted(void)
{
	assert_int_equal(posted.n, 1);
	posted.n = 0;
	posted.fn(posted.data);
}

static unsigned calls;

static void on_empty(void *data)
{
	assert_ptr_equal(data, &calls);
	calls++;
}

static int setup(void **state)
{
	posted.n = calls = 0;
	return 0;
}

static void test_empty(void **state)
{
	struct group g;

	group_init(&g, NULL);
	group_when_empty(&g, on_empty, &calls);
	assert_int_equal(calls, 0); /* it is never called from within group_when_empty */
	run_posted();
	assert_int_equal(calls, 1);
}

static void test_last_leaves(void **state)
{
	struct group g;

	group_init(&g, NULL);
	group_enter(&g);
	group_enter(&g);
	group_when_empty(&g, on_empty, &calls);
	group_leave(&g);
	assert_int_equal(posted.n, 0);
	group_enter(&g); /* before the call others may still enter */
	group_leave(&g);
	assert_int_equal(posted.n, 0);
	group_leave(&g);
	run_posted();
	assert_int_equal(calls, 1);
}

static void test_once(void **state)
{
	struct group g;

	group_init(&g, NULL);
	group_enter(&g);
	group_leave(&g); /* nobody waits for that */
	assert_int_equal(posted.n, 0);
	group_when_empty(&g, on_empty, &calls);
	run_posted();
	group_enter(&g);
	group_leave(&g);
	assert_int_equal(posted.n, 0);
	group_enter(&g);
	group_when_empty(&g, on_empty, &calls); /* somebody waits again */
	assert_int_equal(posted.n, 0);
	group_leave(&g);
	run_posted();
	assert_int_equal(calls, 2);
}

/* What begins between the last leave and the call is waited for too: whoever is called may free everything. */
static void test_begun_meanwhile(void **state)
{
	struct group g;

	group_init(&g, NULL);
	group_enter(&g);
	group_when_empty(&g, on_empty, &calls);
	group_leave(&g);
	group_enter(&g);
	run_posted();
	assert_int_equal(calls, 0);
	group_leave(&g);
	run_posted();
	assert_int_equal(calls, 1);

	group_when_empty(&g, on_empty, &calls);
	group_enter(&g);
	group_leave(&g); /* the call was posted once, not twice */
	run_posted();
	assert_int_equal(calls, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_empty, setup),
		cmocka_unit_test_setup(test_last_leaves, setup),
		cmocka_unit_test_setup(test_once, setup),
		cmocka_unit_test_setup(test_begun_meanwhile, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
