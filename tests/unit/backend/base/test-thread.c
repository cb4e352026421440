/* SPDX-License-Identifier: MIT */
/* A result that a thread waits for. It arrives or not, and the wall clock is set meanwhile. */
#include <errno.h>
#include <pthread.h>

#include "backend/base/thread.h"
#include "tests/unit/clock.h"
#include "tests/unit/unit.h"

static void *reach_later(void *data)
{
	usleep(300 * 1000);
	wait_set(data, -EIO, "it broke");
	return NULL;
}

static void test_first_counts(void **state)
{
	struct wait e;
	char *text = NULL;

	wait_init(&e);
	wait_set(&e, 0, NULL);
	wait_set(&e, -EIO, "too late");
	assert_int_equal(wait_get(&e, 0, &text), 0);
	assert_null(text);
	wait_clear(&e);
}

static void test_does_not_come(void **state)
{
	struct wait e;

	wait_init(&e);
	assert_int_equal(wait_get(&e, 0, NULL), -ETIMEDOUT);
	wait_clear(&e);
}

/*
 * If the wall clock is set by ten minutes, as after boot, waits become neither shorter nor longer.
 */
static void test_clock_is_set(void **state)
{
	static const int offsets[] = {-600, 600};

	for (size_t i = 0; i < array_size(offsets); i++) {
		struct wait e;
		pthread_t thread;
		char *text = NULL;

		clock_set = offsets[i];
		wait_init(&e);
		if (offsets[i] > 0)
			assert_int_equal(wait_get(&e, 1, NULL), -ETIMEDOUT);
		assert_int_equal(pthread_create(&thread, NULL, reach_later, &e), 0);
		assert_int_equal(wait_get(&e, 60, &text), -EIO);
		assert_string_equal(text, "it broke");
		free(text);
		pthread_join(thread, NULL);
		wait_clear(&e);
		clock_set = 0;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_counts),
		cmocka_unit_test(test_does_not_come),
		cmocka_unit_test(test_clock_is_set),
	};

	alarm(300); /* so that a wait without end fails the test */
	return cmocka_run_group_tests(tests, NULL, NULL);
}
