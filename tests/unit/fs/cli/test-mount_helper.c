/* SPDX-License-Identifier: MIT */
/* What mount(8) gives its helper, and what kxfs makes of these words. */
#include "fs/cli/mount_helper.h"
#include "spec/base/mem.h"
#include "tests/unit/unit.h"

#define MAX_WORDS 16

/* The words that LINE is converted to, with blanks between them; or "refused: " and the reason. Malloc'ed. */
static char *convert(const char *line)
{
	cleanup_free char *words = text_copy(line), *why = NULL;
	cleanup_free char **out = NULL;
	char *argv[MAX_WORDS + 1] = {0}, *save = NULL, *text = NULL;
	int argc = 0, n = 0;

	for (char *w = strtok_r(words, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
		assert_true(argc < MAX_WORDS);
		argv[argc++] = w;
	}
	if (mount_helper_args(argc, argv, &n, &out, &why) < 0)
		return text_print("refused: %s", why);
	text = text_copy(out[0]);
	for (int i = 1; i < n; i++)
		text_set(&text, "%s %s", text, out[i]);
	assert_null(out[n]);
	return text;
}

static void test_words(void **state)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{"mount.kxfs local: /m", "mount.kxfs -- local: /m"},
		{"mount.kxfs a/b /m -o rw,x=y", "mount.kxfs -o rw,x=y -- a/b /m"},
		{"mount.kxfs local: /m -snv -t kxfs -o a -o b",
		 "mount.kxfs -o a -o b -- local: /m"},
		{"mount.kxfs -o a -- -b /m", "mount.kxfs -o a -- -b /m"},
		{"mount.kxfs", "mount.kxfs --"},
		{"mount.kxfs local: /m -f", "refused: -f: a fake mount is not possible"},
		{"mount.kxfs local: /m -N /proc/1/ns/mnt",
		 "refused: -N: kxfs can't mount in another namespace; use nsenter(1)"},
		{"mount.kxfs local: /m -o", "refused: -o needs a value"},
		{"mount.kxfs local: /m -x",
		 "refused: unknown option; mount(8) lists the options of helpers"},
	};

	for (size_t i = 0; i < array_size(cases); i++) {
		cleanup_free char *words = convert(cases[i].line);

		assert_string_equal(words, cases[i].words);
	}
}

static void test_name(void **state)
{
	assert_true(mount_helper_is("/sbin/mount.kxfs"));
	assert_true(mount_helper_is("mount.kxfs"));
	assert_false(mount_helper_is("/usr/bin/kxfs"));
	assert_false(mount_helper_is("/mount.kxfs/kxfs"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
