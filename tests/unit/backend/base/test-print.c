/* SPDX-License-Identifier: MIT */
/*
 * Counters of backend/base/print.h: rows by labels, the output in Prometheus format, and the bound
 * on rows.
 */
#include "backend/base/print.h"
#include "tests/unit/unit.h"

static const char *const keys[TALLY_LABELS] = {"verb", "code", NULL};

static char *print(const struct tally *t)
{
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);

	assert_non_null(out);
	tally_print(t, out, "x_total", keys);
	assert_int_equal(fclose(out), 0);
	return text;
}

static void add(struct tally *t, const char *verb, const char *code)
{
	tally_add(t, (const char *const[]){verb, code, ""});
}

static void test_rows(void **state)
{
	cleanup_free struct tally *t = calloc(1, sizeof(*t));
	cleanup_free char *empty = print(t);
	cleanup_free char *text = NULL;
	char value[200];

	assert_string_equal(empty, "");
	add(t, "get", "200");
	add(t, "get", "404");
	add(t, "get", "200");
	add(t, "a\"b\\c\nd", "");
	text = print(t);
	assert_string_equal(text, "kxfs_x_total{verb=\"get\",code=\"200\"} 2\n"
				  "kxfs_x_total{verb=\"get\",code=\"404\"} 1\n"
				  "kxfs_x_total{verb=\"a\\\"b\\\\c\\nd\",code=\"\"} 1\n");
	/* Long values are truncated to the buffer. A truncated value still matches its row. */
	memset(value, 'x', sizeof(value));
	value[sizeof(value) - 1] = '\0';
	add(t, value, "200");
	add(t, value, "200");
	assert_int_equal(atomic_load(&t->n_rows), 4);
	assert_int_equal(atomic_load(&t->rows[3].n), 2);
}

/* If a server invents status codes, memory stays bounded, and real codes are still counted. */
static void test_bounded(void **state)
{
	cleanup_free struct tally *t = calloc(1, sizeof(*t));
	cleanup_free char *text = NULL;
	char code[16];

	for (unsigned i = 0; i < TALLY_ROWS + 50; i++) {
		snprintf(code, sizeof(code), "%u", i);
		add(t, "get", code);
	}
	add(t, "get", "0");
	text = print(t);
	assert_non_null(strstr(text, "kxfs_x_total{verb=\"get\",code=\"0\"} 2\n"));
	assert_non_null(strstr(text, "kxfs_x_total{verb=\"get\",code=\"126\"} 1\n"));
	assert_non_null(strstr(text, "kxfs_x_total{verb=\"other\",code=\"other\"} 51\n"));
	assert_null(strstr(text, "\"127\""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
