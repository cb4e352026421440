/* SPDX-License-Identifier: MIT */
/* The file in which a helper stores how an attempt ended. kxfs ignores a damaged file. */
#include <errno.h>
#include <sys/stat.h>

#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#include "backend/local/helper.h"
#include "spec/base/base.h"

static char root[] = "/tmp/kxfs-helper.XXXXXX";

static struct task_usage used;

static int read_text(const char *text, struct task_end *ret)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "%s/tasks/0.0", root);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return helper_end_read(root, "0.0", ret, &used);
}

static void test_end(void **state)
{
	struct task_end e;

	assert_int_equal(helper_end_read(root, "0.0", &e, &used), -ENOENT);
	assert_int_equal(read_text("1 1 0 0 7 0 0 1 0 1700000000000000000 1700000001000000000\n",
				   &e),
			 0);
	assert_int_equal(e.how, TASK_ENDED);
	assert_int_equal(e.exit_code, 7);
	assert_int_equal(e.late, 1);
	assert_int_equal(e.left, 0);
	assert_true(e.finished - e.started == INT64_C(1000000000));
	assert_int_equal(read_text("1 2 0 0 -1 9 28 0 0 0 5\n", &e), 0);
	assert_int_equal(e.how, TASK_KILLED);
	assert_int_equal(e.sig, 9);
	assert_int_equal(e.lost, 28);
}

/* The file shows how the attempt ended and, if known, what it used. */
static void test_used(void **state)
{
	struct task_end e;

	used.last = 7;
	assert_int_equal(read_text("1 1 0 0 7 0 0 0 0 1 2\n", &e), 0);
	assert_int_equal(used.last, 0);
	assert_int_equal(read_text("1 1 0 0 7 0 0 0 0 1 2\nused 1500000 -1 0 251658240 4 5 6\n",
				   &e),
			 0);
	assert_int_equal(e.exit_code, 7);
	assert_int_equal(used.cpu_us, 1500000);
	assert_int_equal(used.cpu_now, -1);
	assert_int_equal(used.memory_now, 0);
	assert_int_equal(used.memory_peak, 251658240);
	assert_int_equal(used.samples, 4);
	assert_int_equal(used.first, 5);
	assert_int_equal(used.last, 6);
}

static void test_damaged(void **state)
{
	static const char *const texts[] = {
		"",
		"\n\n\n\n",
		"1 1 0 0 7",
		"2 1 0 0 7 0 0 0 0 1 2\n",
		"1 3 0 0 7 0 0 0 0 1 2\n",
		"1 -1 0 0 7 0 0 0 0 1 2\n",
		"1 1 9 0 7 0 0 0 0 1 2\n",
		"1 1 0 0 256 0 0 0 0 1 2\n",
		"1 1 0 0 -2 0 0 0 0 1 2\n",
		"1 1 0 0 7 128 0 0 0 1 2\n",
		"1 1 0 0 7 0 0 0 0 -1 2\n",
		"1 1 0 0 7 0 0 0 0 1 2 3\n",
		"1 1 0 0 7 0 0 0 0 1 2\nmore",
		"1 1 0 0 7 0 0 0 0 1 2\nused",
		"1 1 0 0 7 0 0 0 0 1 2\nused 1 1 1 1 1 5\n",
		"1 1 0 0 7 0 0 0 0 1 2\nused 1 1 1 1 1 5 6 7\n",
		"1 1 0 0 7 0 0 0 0 1 2\nused -1 1 1 1 1 5 6\n",
		"1 1 0 0 7 0 0 0 0 1 2\nused 1 -2 1 1 1 5 6\n",
		"1 1 0 0 7 0 0 0 0 1 2\nused 1 1 -2 1 1 5 6\n",
		"1 1 0 0 7 0 0 0 0 1 2\nused 1 1 1 9007199254740993 1 5 6\n",
		"1 1 0 0 7 0 0 0 0 1 2\nused 1 1 1 1 -1 5 6\n",
		"1 1 0 0 7 0 0 0 0 1 2\nused 1 1 1 1 1 0 6\n",
		"1 1 0 0 7 0 0 0 0 1 2\nused 1 1 1 1 1 6 5\n",
	};
	struct task_end e;

	for (size_t i = 0; i < array_size(texts); i++)
		assert_int_equal(read_text(texts[i], &e), -EINVAL);
}

static int setup(void **state)
{
	char path[64];

	if (!mkdtemp(root))
		return -1;
	snprintf(path, sizeof(path), "%s/tasks", root);
	return mkdir(path, 0700);
}

static int teardown(void **state)
{
	scratch_remove(root);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_end),
		cmocka_unit_test(test_used),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
