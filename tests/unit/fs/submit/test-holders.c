/* SPDX-License-Identifier: MIT */
/*
 * fs/submit/holders: at which close real writers count as done. A story is a list of words: a letter stands for a
 * process, "S" closes a descriptor, "S!" writes, "?!" changes the file unknown who, "S=" is a close that has to be the
 * end; any other close must not be.
 */
#include "fs/submit/holders.h"
#include "tests/unit/unit.h"

static const char *const stories[] = {
	/* cp, tee, an editor, Python: one process opens, writes and closes. */
	"C! C! C=",
	/* dd, and a shell's child for `cat a > f`: the descriptor is put in the place of another one first. */
	"D D! D! D=",
	/* A shell's `{ a; b; } > f`: it puts the file aside, its children write and end, it takes its output back. */
	"S A! A B! B S=",
	/* The same with built-in commands. */
	"S S! S! S=",
	"S S! B! B S! S=",
	/* What it starts in between has the file too, and ends without having written. */
	"S S! X B! B Y S=",
	/* One process writes, others that have inherited the file end meanwhile. */
	"P! X P! Y P=",
	/* A child writes in between. */
	"P! A! A P! P=",
	/* subprocess.run(stdout=f): the child closes its copy when it begins, and is the only one that writes. */
	"A A! A= P=",
	/* sh -c 'a; b' in its place. */
	"A B! B C! C A=",
	/* Popen(stdout=f), and then f.close(): who closes first may have put it aside; only the release ends that. */
	"A P A! A",
	/* exec 3> f; a >&3; b >&3: nothing tells that the shell has it still. What follows is a new content. */
	"A! A= A= B! B= B= S=",
	/* ftruncate, and no more. */
	"?! P=",
	/* One process reads after another has written, and closes. */
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

/* Of more writers than are noted nobody knows who is the last. */
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
