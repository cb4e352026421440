/* SPDX-License-Identifier: MIT */
/*
 * Memory that descendants share. tests/mount/test_usage.py checks their own memory and CPU time, and
 * test_local.py that all of them get signals.
 */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/local/descent.h"
#include "tests/unit/unit.h"

#define MIB INT64_C(1048576)

/*
 * The caller chooses whether memory that parent and child share is counted once, or once per
 * process.
 */
static void test_shared(void **state)
{
	char *memory =
		mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_ANONYMOUS | MAP_SHARED, -1, 0);
	struct descent parts, whole;

	assert_true(memory != MAP_FAILED);
	memset(memory, 1, 64 * MIB);
	if (fork() == 0) {
		volatile char *at = memory;

		if (fork() < 0)
			_exit(1);

		/* The pages are in the page tables of both processes, and in those of the test. */
		for (size_t i = 0; i < 64 * MIB; i += 4096)
			(void)at[i];
		for (;;)
			pause();
	}
	for (int tries = 0; tries < 1000; tries++) {
		assert_true(descent_sample(false, &whole));
		if (whole.memory >= 128 * MIB)
			break;
		poll(NULL, 0, 50);
	}
	assert_true(whole.memory >= 128 * MIB);
	assert_true(descent_sample(true, &parts));
	assert_true(parts.memory < whole.memory - 64 * MIB);
	descent_signal(getpid(), SIGKILL);
	while (wait(NULL) > 0)
		continue;
	assert_true(descent_sample(true, &parts));
	assert_int_equal(parts.memory, 0);
	munmap(memory, 64 * MIB);
}

static int setup(void **state)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
