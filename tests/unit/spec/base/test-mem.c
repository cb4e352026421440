/* SPDX-License-Identifier: MIT */
/* Memory that does not fail: it is zeroed, grown and copied, and the program ends when there is none. */
#include <malloc.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "spec/base/mem.h"
#include "tests/unit/unit.h"

struct pair {
	char *a;
	int b;
};

static void test_new(void **state)
{
	cleanup_free struct pair *one = new0(struct pair);
	cleanup_free struct pair *many = new0_n(struct pair, 3);
	cleanup_free void *none = mem_zero(0);

	assert_null(one->a);
	for (size_t i = 0; i < 3; i++)
		assert_true(!many[i].a && !many[i].b);
	assert_non_null(none);
}

static void test_grow(void **state)
{
	cleanup_free int *v = NULL;

	v = mem_grow(v, 0, sizeof(*v));
	assert_non_null(v);
	for (int i = 0; i < 1000; i++) {
		v = mem_grow(v, (size_t)i + 1, sizeof(*v));
		v[i] = i;
	}
	for (int i = 0; i < 1000; i++)
		assert_int_equal(v[i], i);
}

static void test_more(void **state)
{
	cleanup_free int *v = NULL;
	size_t n = 0;

	/* However the memory shrinks in between, there is always room for one more. */
	for (int i = 0; i < 1000; i++) {
		v = mem_more(v, n, sizeof(*v));
		assert_true(malloc_usable_size(v) >= (n + 1) * sizeof(*v));
		v[n++] = i;
		if (i % 100 == 99)
			n -= 70;
	}
	for (size_t i = 0; i < 30; i++)
		assert_int_equal(v[i], i);
}

static void test_copy(void **state)
{
	cleanup_free char *bytes = mem_copy("a\0b", 3), *text = text_copy("text");
	cleanup_free char *printed = text_print("%s-%d", "a", 7);

	assert_memory_equal(bytes, "a\0b", 4);
	assert_string_equal(text, "text");
	assert_string_equal(printed, "a-7");
	text_set(&text, "<%s>", text); /* the new text is made from the old one */
	assert_string_equal(text, "<text>");
	free(take_ptr(printed));
	text_set(&printed, "%s", "new");
	assert_string_equal(printed, "new");
}

/* Does a process of its own end that asks for more memory than there can be? (A sanitizer ends it in its own way.) */
static bool ends(void (*ask)(void))
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0});
		(void)!freopen("/dev/null", "w", stderr);
		signal(SIGABRT, SIG_DFL);
		ask();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return !WIFEXITED(status) || WEXITSTATUS(status) != 0;
}

static void ask_product(void)
{
	free(mem_zero_n(SIZE_MAX / 2, 16));
}

static void ask_growth(void)
{
	free(mem_grow(NULL, SIZE_MAX / 2, 16));
}

static void ask_copy(void)
{
	free(mem_copy("", SIZE_MAX));
}

static void test_none(void **state)
{
	assert_true(ends(ask_product));
	assert_true(ends(ask_growth));
	assert_true(ends(ask_copy));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),  cmocka_unit_test(test_grow),
		cmocka_unit_test(test_more), cmocka_unit_test(test_copy),
		cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
