/* SPDX-License-Identifier: MIT */
/*
 * What all user requests have in common: pauses between retries, and an answer when the mount ends.
 */
#include "tests/unit/backend/client/fake_net.h"

#include <errno.h>

#include "backend/kube/parts.h"

static struct {
	struct group group;
	struct requests *all;
	struct backend_request rq;
	size_t n_sent, n_freed, n_answered;
	int err;
} rig;

void backend_answer(struct backend_request *rq, int err, const char *id, const char *text)
{
	rig.n_answered++;
	rig.err = err;
}

void backend_reply(struct backend_request *rq, const struct backend_result *result)
{
	rig.n_answered++;
}

static void on_send(struct request *r)
{
	rig.n_sent++;
}

static void on_free(struct request *r)
{
	rig.n_freed++;
}

static const struct request_ops ops = {on_send, on_free};

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	group_init(&rig.group, NULL);
	rig.all = requests_new(NULL, NULL, &rig.group, "ns");
	return 0;
}

static int teardown(void **state)
{
	assert_null(fake.timers);
	assert_int_equal(rig.n_freed, rig.n_answered);
	assert_int_equal(rig.group.n, 0);
	requests_free(rig.all);
	return 0;
}

/* Assert that the next retry comes MS later, or up to a quarter more. */
static void assert_pause(struct request *r, unsigned wait_ms, unsigned ms)
{
	uint64_t before = fake.now;
	size_t sent = rig.n_sent;

	assert_true(request_again(r, wait_ms));
	assert_true(fake_wait(UINT32_MAX));
	assert_int_equal(rig.n_sent, sent + 1);
	assert_in_range(fake.now - before, ms - ms / 4, ms + ms / 4);
}

/*
 * If the server has trouble, kxfs retries after growing pauses, and not before the time that the
 * server requested. After ten minutes it stops retrying.
 */
static void test_pauses(void **state)
{
	static const unsigned pauses[] = {500, 1000, 2000, 4000, 8000, 15000, 15000};
	struct request r = {0};

	request_begin(rig.all, &r, &rig.rq, &ops);
	for (size_t i = 0; i < array_size(pauses); i++)
		assert_pause(&r, 0, pauses[i]);
	assert_true(request_again(&r, 40000));
	assert_false(fake_wait(39999));
	/* random jitter only makes a pause longer, as in backoff_next */
	assert_true(fake_wait(67000));
	fake.now = REQUEST_FIND_OUT_MS;
	assert_true(request_again(&r, 0));
	fake_pass(20000);
	assert_false(request_again(&r, 0));
	request_answer(&r, 0, NULL, NULL);
}

/*
 * When the mount ends, all requests are answered, except those that the pool works on. Nothing is
 * sent after that.
 */
static void test_stop(void **state)
{
	struct request plain = {0}, unclear = {0}, working = {0};

	request_begin(rig.all, &plain, &rig.rq, &ops);
	assert_true(request_again(&plain, 0));
	request_begin(rig.all, &working, &rig.rq, &ops);
	working.working = true;
	requests_stop(rig.all);
	assert_int_equal(rig.n_answered, 1);
	assert_int_equal(rig.err, -ECANCELED);
	assert_null(fake.timers);
	working.working = false;
	request_begin(rig.all, &unclear, &rig.rq, &ops);
	unclear.unclear = true;
	requests_stop(rig.all);
	assert_int_equal(rig.n_answered, 3);
	assert_int_equal(rig.err, -EINPROGRESS);
	assert_int_equal(rig.n_sent, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_pauses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_stop, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
