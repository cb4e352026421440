/* SPDX-License-Identifier: MIT */
/*
 * Finding the descendants of this process, sending them signals, and adding up the memory and CPU
 * time that they use.
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/base/process.h"
#include "backend/local/descent.h"
#include "tests/unit/unit.h"

#define MIB INT64_C(1048576)

/* Map and fill N bytes. If SHARED, they are shared with later children. */
static void *fill(size_t n, bool shared)
{
	char *memory = mmap(NULL, n, PROT_READ | PROT_WRITE,
			    MAP_ANONYMOUS | (shared ? MAP_SHARED : MAP_PRIVATE), -1, 0);

	assert_true(memory != MAP_FAILED);
	memset(memory, 1, n);
	return memory;
}

/* Start a child in its own session, and a child of that child. Both fill N bytes, and then wait. */
static void start_family(size_t n)
{
	int fds[2];
	char said[2];

	assert_int_equal(pipe(fds), 0);
	if (fork() == 0) {
		setsid();
		if (fork() < 0)
			_exit(1);
		fill(n, false);
		(void)!write(fds[1], "", 1);
		for (;;)
			pause();
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], said, 1), 1);
	assert_int_equal(read(fds[0], said, 1), 1);
	close(fds[0]);
}

/* Kill all descendants, and wait for them. */
static void end_family(void)
{
	descent_signal(getpid(), SIGKILL);
	while (wait(NULL) > 0)
		continue;
}

static void test_private(void **state)
{
	struct descent all;

	assert_true(descent_sample(true, &all));
	assert_int_equal(all.memory, 0);
	start_family(32 * MIB);
	for (int shared = 0; shared < 2; shared++) {
		assert_true(descent_sample(shared, &all));
		assert_true(all.memory >= 64 * MIB);
	}
	end_family();
	assert_true(descent_sample(true, &all));
}

/*
 * The caller chooses whether memory that parent and child share is counted once, or once per
 * process.
 */
static void test_shared(void **state)
{
	void *memory = fill(64 * MIB, true);
	struct descent parts, whole;

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
	end_family();
	munmap(memory, 64 * MIB);
}

/* The CPU time of running processes, and of the children that they waited for. */
static void test_time(void **state)
{
	struct descent all = {0};
	int fds[2];
	char said;

	assert_int_equal(pipe(fds), 0);
	if (fork() == 0) {
		pid_t child = fork();

		if (child == 0) {
			while (clock() < CLOCKS_PER_SEC / 2)
				continue;
			_exit(0);
		}
		waitpid(child, NULL, 0);
		(void)!write(fds[1], "", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(fds[0], &said, 1), 1);
	assert_true(descent_sample(false, &all));
	assert_true(all.cpu_us >= 450000);
	end_family();
	close(fds[0]);
	close(fds[1]);
}

static void *wait_forever(void *data)
{
	for (;;)
		pause();
	return data;
}

/* Start a process, and a child of it. The first thread of the process ends, another one waits. */
static pid_t start_headless(void)
{
	struct process_stat stat = {0};
	pthread_t thread;
	pid_t pid = fork();

	if (pid == 0) {
		if (fork() == 0)
			wait_forever(NULL);
		if (pthread_create(&thread, NULL, wait_forever, NULL) != 0)
			_exit(1);
		pthread_exit(NULL);
	}
	for (int tries = 0; tries < 1000 && !stat.remains; tries++) {
		poll(NULL, 0, 20);
		assert_int_equal(process_stat(pid, &stat), 0);
	}
	assert_true(stat.remains);
	return pid;
}

/* Signals reach a process whose first thread has ended, and the children of that process. */
static void test_first_thread_ended(void **state)
{
	pid_t pid = start_headless();
	int n = 0;

	descent_signal(getpid(), SIGKILL);
	for (int tries = 0; tries < 1000 && n < 2; tries++) {
		n += waitpid(-1, NULL, WNOHANG) > 0;
		poll(NULL, 0, 20);
	}
	if (n < 2) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	end_family();
	assert_int_equal(n, 2);
}

static int setup(void **state)
{
	return prctl(PR_SET_CHILD_SUBREAPER, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_private),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_time),
		cmocka_unit_test(test_first_thread_ended),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
