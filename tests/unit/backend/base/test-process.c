/* SPDX-License-Identifier: MIT */
/* backend/base/process.h: the parser of /proc/PID/stat, whatever the process's name is. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/base/process.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

static struct process_stat parse(const char *text)
{
	struct process_stat stat;

	assert_int_equal(process_parse_stat(text, &stat), 0);
	return stat;
}

/* The fields of proc(5), up to RSS at most. */
static void test_parse(void **state)
{
	static const struct {
		const char *text;
		struct process_stat want;
	} rows[] = {
		{"7 (cp) R 31 7 7 0 -1 4194304 95 0", {.parent = 31}},
		{"7 (cp) Z 1 7 7 0 -1 4194304 95 0", {.parent = 1, .remains = true}},
		{"7 (cp) X 1 7 7 0 -1 4194304 95 0", {.parent = 1, .remains = true}},
		{"7 (cp) R 1 7 7 0 -1 4194304 95 1 2 3 100 20 3 -4 20 0 1 0 9999 123456 250 18",
		 {.parent = 1, .ticks = 123, .pages = 250, .started = 9999}},
		/* names that look like more fields */
		{"7 (a) R 1 7) R 1 7 7 0 -1 1024 95", {.parent = 1, .signal = PROCESS_HIDDEN}},
		{"7 (a) Z 1 7 7 0 -1 1024 95) R 1 7 7 0 -1 0 95", {.parent = 1}},
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		const struct process_stat stat = parse(rows[i].text), *want = &rows[i].want;

		assert_int_equal(stat.parent, want->parent);
		assert_int_equal(stat.remains, want->remains);
		assert_int_equal(stat.signal, want->signal);
		assert_int_equal(stat.ticks, want->ticks);
		assert_int_equal(stat.pages, want->pages);
		assert_int_equal(stat.started, want->started);
	}
}

/* What Linux 6.18 shows for a thread that closes its process's files at exit. */
static void test_signal(void **state)
{
	static const struct {
		const char *flags;
		const char *exit_code;
		int signal;
	} rows[] = {
		{"4194308", "0", 0},   /* exit(0) in this thread */
		{"4194308", "256", 0}, /* exit(1) */
		/* this thread exited by itself when the process was killed */
		{"4194308", "9", SIGKILL},
		{"4195332", "0", PROCESS_HIDDEN}, /* exit(0) in another thread, or no permission */
		{"4195332", "768", 0},		  /* exit(3) in another thread */
		{"4195332", "15", SIGTERM},
		{"4195332", "9\n", SIGKILL},
		{"4195844", "134", SIGABRT}, /* with a core dump */
		{"4194304", "19", 0},	     /* was stopped, and is running again */
	};

	for (size_t i = 0; i < array_size(rows); i++) {
		char *text cleanup_free = text_print(
			"7 (a ) b) S 1 7 7 0 -1 %s 95 0 0 0 1 2 3 4 20 0 2 0 99 0 0 18446744073709551615 "
			"0 0 0 0 0 0 0 4096 0 0 0 0 -1 1 0 0 0 0 0 0 0 0 0 0 0 0 %s",
			rows[i].flags, rows[i].exit_code);

		assert_int_equal(parse(text).signal, rows[i].signal);
	}
}

static void test_not_a_stat(void **state)
{
	static const char *const texts[] = {"", "7 (cp) R 1 7", "7 (cp) R 1 7 7 0 -1 ",
					    "7 (cp) R 1 7 7 0 -1 x1024 9", "7 cp R 1 7 7 0 -1 0 9"};
	struct process_stat stat;

	for (size_t i = 0; i < array_size(texts); i++)
		assert_int_equal(process_parse_stat(texts[i], &stat), -EINVAL);
}

/* What kxfs sees of a child that has ended. A negative row is the signal that kills it. */
static void test_real(void **state)
{
	static const int ends[] = {0, 15, -SIGTERM, -SIGKILL};
	struct process_stat stat;

	for (size_t i = 0; i < array_size(ends); i++) {
		siginfo_t info;
		pid_t child = fork();

		if (child == 0) {
			if (ends[i] >= 0)
				_exit(ends[i]);
			kill(getpid(), -ends[i]);
		}
		assert_true(child > 0);
		assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
		assert_int_equal(process_stat(child, &stat), 0);
		assert_int_equal(stat.parent, getpid());
		assert_true(stat.remains);
		assert_int_equal(stat.signal, ends[i] < 0 ? -ends[i] : 0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		assert_int_equal(process_stat(child, &stat), -ESRCH);
	}
	assert_int_equal(process_stat(getpid(), &stat), 0);
	assert_false(stat.remains || stat.signal);
	assert_int_equal(process_stat(0, &stat), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse),
		cmocka_unit_test(test_signal),
		cmocka_unit_test(test_not_a_stat),
		cmocka_unit_test(test_real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
