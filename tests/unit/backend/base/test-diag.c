/* SPDX-License-Identifier: MIT */
/* The daemon's messages: what .kxfs/log shows, and that the ring stays bounded and consistent. */
#include <errno.h>

#include "backend/base/diag.h"
#include "backend/base/lock.h"
#include "tests/unit/unit.h"

static char *text_now(void)
{
	size_t len;
	char *text = diag_text(&len);

	assert_non_null(text);
	assert_int_equal(strlen(text), len);
	return text;
}

static void test_message(void **state)
{
	cleanup_free char *text = NULL;
	char *line;

	diag_setup(DIAG_DEBUG, false);
	diag(DIAG_DEBUG, "wanted");
	diag_setup(DIAG_INFO, false);
	errno = ENOSPC;
	diag(DIAG_WARNING, "disk of %s is\tfull\nreally\x1b[31m\x9b\xc2\x9b", "node-1");
	assert_int_equal(errno, ENOSPC);
	diag(DIAG_DEBUG, "not wanted");
	text = text_now();
	assert_non_null(strstr(text, "Z debug wanted\n"));
	line = strstr(text, "Z warning ");
	assert_non_null(line);
	assert_string_equal(line,
			    "Z warning disk of node-1 is\\tfull | really\\x1b[31m\\x9b\\x9b\n");
	/* each line begins with a time like 2026-11-21T09:08:40.123Z */
	assert_int_equal(text[10], 'T');
	assert_int_equal(strstr(text, "Z debug") - text, 23);
}

static void test_long(void **state)
{
	char big[5000];
	cleanup_free char *text = NULL;

	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	diag(DIAG_ERROR, "%s", big);
	memset(big, '\x01', sizeof(big) - 1);
	diag(DIAG_ERROR, "%s", big);
	text = text_now();
	assert_non_null(strstr(text, "xxx...\n"));
}

static void test_ring(void **state)
{
	cleanup_free char *text = NULL;
	unsigned expect = 0, first = 0, i;
	char *line;

	for (i = 0; i < 20000; i++)
		diag(DIAG_INFO, "number %u", i);
	text = text_now();
	assert_in_range(strlen(text), 100000, 200000);
	/* The ring contains whole lines with consecutive numbers, up to the newest one. */
	for (line = text; *line; line = strchr(line, '\n') + 1) {
		unsigned n;
		char *at = strstr(line, " info number ");

		assert_non_null(at);
		assert_int_equal(sscanf(at, " info number %u\n", &n), 1);
		if (!first)
			first = expect = n;
		assert_int_equal(n, expect);
		expect++;
	}
	assert_int_equal(expect, 20000);
	assert_true(first > 0);
}

static void *writer(void *data)
{
	for (unsigned i = 0; i < 2000; i++)
		diag(DIAG_INFO, "thread %s %u", (const char *)data, i);
	return NULL;
}

static void test_threads(void **state)
{
	static const char *const names[] = {"a", "b", "c"};
	pthread_t thread[3];

	for (size_t i = 0; i < array_size(thread); i++)
		pthread_create(&thread[i], NULL, writer, (void *)(uintptr_t)names[i]);
	for (size_t i = 0; i < 20; i++) {
		cleanup_free char *text = text_now();

		assert_int_equal(text[strlen(text) - 1], '\n');
	}
	for (size_t i = 0; i < array_size(thread); i++)
		pthread_join(thread[i], NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_message),
		cmocka_unit_test(test_long),
		cmocka_unit_test(test_ring),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
