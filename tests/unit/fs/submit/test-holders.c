/* SPDX-License-Identifier: MIT */
/*
 * fs/submit/holders.h: at which close a real writer counts as done. A story is a list of words: a letter stands for a
 * process, "S" means that it closes a descriptor, "S!" that it writes, "?!" that the file changes and it is not known
 * by whom. "S=" is a close that has to be the end; at any other close the writer must not count as done.
 */
#include "fs/submit/holders.h"
#include "tests/unit/unit.h"

static const char *const stories[] = {
	/* cp, tee, an editor, Python: one process opens, writes and closes. */
	"C! C! C=",
	/* dd, and a shell's child for `cat a > f`: it first puts the descriptor in the place of another one. */
	"D D! D! D=",
	/*
	 * A shell's `{ a; b; } > f`: the shell puts the file aside, its children write and end, and it takes its output
	 * back.
	 */
	"S A! A B! B S=",
	/* The same with commands that are built in. */
	"S S! S! S=",
	"S S! B! B S! S=",
	/* A program that the shell starts in between has the file too, and ends without having written. */
	"S S! X B! B Y S=",
	/* One process writes, and others that have inherited the file end meanwhile. */
	"P! X P! Y P=",
	/* A child of the writer writes in between. */
	"P! A! A P! P=",
	/* subprocess.run(stdout=f): the child closes its copy when it begins, and is the only process that writes. */
	"A A! A= P=",
	/* sh -c 'a; b' in the place of that child. */
	"A B! B C! C A=",
	/*
	 * Popen(stdout=f), and then f.close(): the process that closes first may only have put the file aside, so the
	 * end is the release.
	 */
	"A P A! A",
	/* exec 3> f; a >&3; b >&3: nothing tells that the shell still has the file. What b writes is a new content. */
	"A! A= A= B! B= B= S=",
	/* ftruncate, and nothing else. */
	"?! P=",
	/* One process reads and closes after another has written. */
	"A! B A=",
};

static void test_stories(void **state)
{
	for (size_t i = 0; i < array_size(stories); i++) {
		struct holders h = {0};

		for (const char *p = stories[i]; *p; p += strcspn(p, " "), p += *p == ' ') {
			uint64_t who = *p == '?' ? 0 : (uint64_t)*p;

			if (p[1] == '!')
				holders_wrote(&h, who);
			else if (holders_closed(&h, who) != (p[1] == '='))
				fail_msg("%s: at %s", stories[i], p);
		}
	}
}

/* When more processes write than are noted, nobody knows which is the last. */
static void test_crowd(void **state)
{
	struct holders h = {0};

	for (uint64_t who = 1; who <= HOLDERS_MAX; who++)
		holders_wrote(&h, who);
	for (uint64_t who = 1; who < HOLDERS_MAX; who++)
		assert_false(holders_closed(&h, who));
	assert_true(holders_closed(&h, HOLDERS_MAX));
	for (uint64_t who = 1; who <= HOLDERS_MAX + 1; who++)
		holders_wrote(&h, who);
	for (uint64_t who = 1; who <= HOLDERS_MAX + 1; who++)
		assert_false(holders_closed(&h, who));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_stories),
		cmocka_unit_test(test_crowd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
