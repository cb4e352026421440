/* SPDX-License-Identifier: MIT */
/* fs/submit/verdict: the last launch decides, and what a mount left open is told by the next one. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fs/submit/verdict.h"

static const struct record_owner us = {1000, 1000}, them = {7, 8};

static int setup(void **state)
{
	*state = verdicts_new(us);
	return 0;
}

static int teardown(void **state)
{
	verdicts_free(*state);
	return 0;
}

static void assert_shows(struct verdicts *all, const char *name, const char *job, const char *error)
{
	struct verdict_view v = {0};

	assert_int_equal(verdict_get(all, name, SUBMIT_NAME_JOB, &v), job ? 0 : -ENOENT);
	if (job)
		assert_string_equal(v.text, job);
	free(take_ptr(v.text));
	assert_int_equal(verdict_get(all, name, SUBMIT_NAME_ERROR, &v), error ? 0 : -ENOENT);
	if (error)
		assert_string_equal(v.text, error);
	free(v.text);
}

static void test_last_launch_decides(void **state)
{
	struct verdicts *all = *state;
	uint64_t first = verdicts_next(all), second = verdicts_next(all);

	assert_true(second > first);
	/* The answer on the second comes first. */
	verdict_refused(all, "x.yaml", second, "bad", us);
	assert_shows(all, "x.yaml", NULL, "bad\n");
	verdict_accepted(all, "x.yaml", first, "job-1", us);
	assert_shows(all, "x.yaml", "job-1", "bad\n");
	verdict_accepted(all, "x.yaml", verdicts_next(all), "job-3", us);
	assert_shows(all, "x.yaml", "job-3", NULL);
	verdict_refused(all, "x.yaml", second, "bad", us);
	verdict_accepted(all, "x.yaml", second, "job-2", us);
	assert_shows(all, "x.yaml", "job-3", NULL);
}

static void test_error_text(void **state)
{
	struct verdicts *all = *state;
	char *longest = calloc(1, 2 * RECORD_MAX_ERROR);
	struct verdict_view v;

	verdict_refused(all, "x.yaml", verdicts_next(all), "line\n\x1b[31mred", us);
	assert_shows(all, "x.yaml", NULL, "line\n\\x1b[31mred\n");
	memset(longest, 'a', 2 * RECORD_MAX_ERROR - 1);
	verdict_refused(all, "x.yaml", verdicts_next(all), longest, us);
	assert_int_equal(verdict_get(all, "x.yaml", SUBMIT_NAME_ERROR, &v), 0);
	assert_int_equal(strlen(v.text), RECORD_MAX_ERROR);
	assert_string_equal(v.text + RECORD_MAX_ERROR - 5, "a...\n");
	free(v.text);
	free(longest);
}

static void test_move_and_remove(void **state)
{
	struct verdicts *all = *state;

	verdict_accepted(all, "x.yaml", verdicts_next(all), "job-1", them);
	verdict_refused(all, "y.yaml", verdicts_next(all), "bad", us);
	verdict_move(all, "x.yaml", "y.yaml");
	assert_shows(all, "x.yaml", NULL, NULL);
	assert_shows(all, "y.yaml", "job-1", NULL);
	verdict_move(all, "none.yaml", "y.yaml");
	assert_shows(all, "y.yaml", "job-1", NULL);
	assert_int_equal(verdict_remove(all, "y.yaml", SUBMIT_NAME_ERROR), -ENOENT);
	assert_int_equal(verdict_remove(all, "y.yaml", SUBMIT_NAME_JOB), 0);
	assert_int_equal(verdict_remove(all, "y.yaml", SUBMIT_NAME_JOB), -ENOENT);
	assert_shows(all, "y.yaml", NULL, NULL);
}

/* The table of the next mount, with what the records of this one say of NAME. */
static struct verdicts *next_mount(struct verdicts *all, const char *name)
{
	struct verdicts *next = verdicts_new(us);
	struct record r = {0};

	verdict_fill_record(all, name, &r);
	verdict_take_record(next, name, &r);
	record_clear(&r);
	return next;
}

static void test_over_a_mount(void **state)
{
	struct verdicts *next;
	struct verdict_view v;
	struct record_owner owner;
	char *name, *id;

	verdict_accepted(*state, "x.yaml", verdicts_next(*state), "job-1", them);
	verdict_refused(*state, "x.yaml", verdicts_next(*state), "bad", them);
	next = next_mount(*state, "x.yaml");
	assert_shows(next, "x.yaml", "job-1", "bad\n");
	assert_int_equal(verdict_get(next, "x.yaml", SUBMIT_NAME_JOB, &v), 0);
	assert_int_equal(v.owner.uid, them.uid);
	free(v.text);
	assert_false(verdicts_take_open(next, &name, &id, &owner));
	/* Numbers begin anew, and what comes now is newer than what was there. */
	verdict_accepted(next, "x.yaml", verdicts_next(next), "job-2", us);
	assert_shows(next, "x.yaml", "job-2", NULL);
	verdicts_free(next);
}

static void assert_open(struct verdicts *all, const char *name, const char *id)
{
	char *got_name = NULL, *got_id = NULL;
	struct record_owner owner;

	assert_true(verdicts_take_open(all, &got_name, &got_id, &owner));
	assert_string_equal(got_name, name);
	assert_true(streq(got_id, id));
	free(got_name);
	free(got_id);
	assert_false(verdicts_take_open(all, &got_name, &got_id, &owner));
}

static void test_left_open(void **state)
{
	struct verdicts *all = *state, *next;

	verdict_accepted(all, "x.yaml", verdicts_next(all), "job-1", us);
	verdict_begin(all, "x.yaml", us);
	verdict_recorded(all, "x.yaml", 1000);
	verdict_recorded(all, "x.yaml", 2000); /* the first counts */
	assert_int_equal(verdicts_reported_until(all, 1500), 999);
	assert_int_equal(verdicts_reported_until(all, 500), 500);

	next = next_mount(all, "x.yaml");
	verdict_was_launched(next, "x.yaml", "job-0", 900, 0);	/* of an earlier write */
	verdict_was_launched(next, "x.yaml", "job-1", 1100, 0); /* told already */
	assert_open(next, "x.yaml", NULL);
	verdicts_free(next);

	next = next_mount(all, "x.yaml");
	verdict_was_launched(next, "x.yaml", "job-2", 1000, 5000);
	verdict_was_launched(next, "x.yaml", "job-0", 900, 0);
	assert_open(next, "x.yaml", "job-2");
	verdicts_free(next);

	verdict_end(all, "x.yaml");
	assert_int_equal(verdicts_reported_until(all, 1500), 1500);
	next = next_mount(all, "x.yaml");
	verdict_was_launched(next, "x.yaml", "job-2", 5000, 5000); /* told, and removed since */
	verdict_was_launched(next, "lost.yaml", "job-3", 5001, 5000);
	assert_open(next, "lost.yaml", "job-3");
	verdicts_free(next);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_last_launch_decides, setup, teardown),
		cmocka_unit_test_setup_teardown(test_error_text, setup, teardown),
		cmocka_unit_test_setup_teardown(test_move_and_remove, setup, teardown),
		cmocka_unit_test_setup_teardown(test_over_a_mount, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_open, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
