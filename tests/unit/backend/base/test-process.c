/* SPDX-License-Identifier: MIT */
/* backend/base/process.h: what a line of /proc/PID/stat says, whatever the process is called. */
#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/base/process.h"
#include "tests/unit/unit.h"

static struct process_stat parse(const char *text)
{
	struct process_stat stat;

	assert_int_equal(process_parse_stat(text, &stat), 0);
	return stat;
}

static void test_parse(void **state)
{
	assert_int_equal(parse("7 (cp) R 31 7 7 0 -1 4194304 95 0").parent, 31);
	assert_false(parse("7 (cp) R 1 7 7 0 -1 4194304 95 0").remains);
	assert_true(parse("7 (cp) Z 1 7 7 0 -1 4194304 95 0").remains);
	assert_true(parse("7 (cp) X 1 7 7 0 -1 4194304 95 0").remains);
	assert_false(parse("7 (cp) R 1 7 7 0 -1 4194304 95 0").killed);
	assert_true(parse("7 (cp) R 1 7 7 0 -1 4195328 95 0").killed);
}

/* "7 (cp) ..." up to RSS, as proc(5) has it. */
static void test_used(void **state)
{
	const struct process_stat stat = parse(
		"7 (cp) R 31 7 7 0 -1 4194304 95 1 2 3 100 20 3 -4 20 0 1 0 9999 123456 250 18");

	assert_int_equal(stat.ticks, 123);
	assert_int_equal(stat.pages, 250);
	assert_int_equal(parse("7 (cp) R 31 7 7 0 -1 4194304 95 0").ticks, 0);
	assert_int_equal(parse("7 (cp) R 31 7 7 0 -1 4194304 95 0").pages, 0);
}

static void test_names(void **state)
{
	assert_true(parse("7 (a) R 1 7) R 1 7 7 0 -1 1024 95").killed);
	assert_false(parse("7 (a) Z 1 7 7 0 -1 1024 95) R 1 7 7 0 -1 0 95").killed);
	assert_false(parse("7 (a) Z 1 7 7 0 -1 1024 95) R 1 7 7 0 -1 0 95").remains);
}

static void test_not_a_stat(void **state)
{
	static const char *const texts[] = {"", "7 (cp) R 1 7", "7 (cp) R 1 7 7 0 -1 ",
					    "7 (cp) R 1 7 7 0 -1 x1024 9", "7 cp R 1 7 7 0 -1 0 9"};
	struct process_stat stat;

	for (size_t i = 0; i < array_size(texts); i++)
		assert_int_equal(process_parse_stat(texts[i], &stat), -EINVAL);
}

static void test_real(void **state)
{
	struct process_stat stat;
	siginfo_t info;
	pid_t child = fork();

	if (child == 0)
		_exit(0);
	assert_true(child > 0);
	assert_int_equal(waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(process_stat(child, &stat), 0);
	assert_int_equal(stat.parent, getpid());
	assert_true(stat.remains);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_int_equal(process_stat(child, &stat), -ESRCH);
	assert_int_equal(process_stat(getpid(), &stat), 0);
	assert_false(stat.remains || stat.killed);
	assert_int_equal(process_stat(0, &stat), -ESRCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse), cmocka_unit_test(test_used),
		cmocka_unit_test(test_names), cmocka_unit_test(test_not_a_stat),
		cmocka_unit_test(test_real),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
