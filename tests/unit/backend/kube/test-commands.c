/* SPDX-License-Identifier: MIT */
/*
 * Commands that were given through ctl. A command is pending until its result shows in the job's
 * status, until it counts as ignored, or until the job is deleted.
 */
#include "tests/unit/backend/client/fake_net.h"

#include <errno.h>

#include "backend/kube/commands.h"
#include "spec/view/view.h"

static struct {
	struct commands *cs;
	size_t n_changed, n_ended;
	enum command_end end;
	char text[256];
	enum spec_control_outcome outcome; /* what the kind reports as the result */
} rig;

static void on_changed(void *data, const char *uid)
{
	assert_string_equal(uid, "u1");
	rig.n_changed++;
}

static void on_ended(void *data, enum command_end end, const char *text)
{
	rig.n_ended++;
	rig.end = end;
	snprintf(rig.text, sizeof(rig.text), "%s", text ? text : "");
}

static enum spec_control_outcome outcome_of(enum spec_action action,
					    const struct spec_control_mark *before,
					    const struct spec_control_job *now)
{
	assert_string_equal(before->phase, "Running");
	assert_non_null(now);
	return rig.outcome;
}

static const struct spec_control control = {.outcome = outcome_of};
static struct spec_job_view view = {.phase = (char[]){"Running"}};
static const struct spec_control_job job = {.view = &view};

static int setup(void **state)
{
	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	rig.cs = commands_new(NULL);
	commands_set_changed(rig.cs, on_changed, NULL);
	return 0;
}

static int teardown(void **state)
{
	commands_free(rig.cs);
	assert_null(fake.timers);
	return 0;
}

static void begin(void)
{
	assert_int_equal(commands_begin(rig.cs, "u1", "one", SPEC_SUSPEND, on_ended, NULL), 0);
}

static void take(void)
{
	begin();
	commands_sent(rig.cs, "u1", &view, NULL);
	commands_taken(rig.cs, "u1", false);
}

static void show(void)
{
	(void)commands_check(rig.cs, "u1", &control, &job);
	commands_shown(rig.cs, "u1", view.phase);
}

static void test_obeyed(void **state)
{
	begin();
	assert_int_equal(commands_begin(rig.cs, "u1", "one", SPEC_RESUME, on_ended, NULL), -EBUSY);
	/* the server has not accepted it yet */
	assert_int_equal(commands_pending(rig.cs, "u1"), 0);
	commands_sent(rig.cs, "u1", &view, NULL);
	commands_taken(rig.cs, "u1", false);
	assert_int_equal(rig.n_changed, 1);
	assert_int_equal(commands_pending(rig.cs, "u1"), 1u << SPEC_SUSPEND);
	show();
	assert_int_equal(rig.n_ended, 0);
	rig.outcome = SPEC_CONTROL_OBEYED;
	assert_true(commands_check(rig.cs, "u1", &control, &job));
	assert_int_equal(commands_pending(rig.cs, "u1"), 0);
	assert_int_equal(rig.n_ended, 0); /* no view of the job was shown yet */
	commands_shown(rig.cs, "u1", view.phase);
	assert_int_equal(rig.n_ended, 1);
	assert_int_equal(rig.end, COMMAND_OBEYED);
	begin(); /* the next command is allowed now */
}

/* The watch shows the result before the reply to the command arrives. */
static void test_shown_before_taken(void **state)
{
	begin();
	commands_sent(rig.cs, "u1", &view, NULL);
	rig.outcome = SPEC_CONTROL_OBEYED;
	show();
	assert_int_equal(rig.end, COMMAND_OBEYED);
	assert_int_equal(rig.n_ended, 1);
	commands_taken(rig.cs, "u1", false);
	assert_int_equal(commands_pending(rig.cs, "u1"), 0);
}

static void test_late(void **state)
{
	take();
	rig.outcome = SPEC_CONTROL_LATE;
	show();
	assert_int_equal(rig.end, COMMAND_LATE);
	assert_non_null(strstr(rig.text, "too late: the job is Running"));
}

static void test_ignored(void **state)
{
	take();
	commands_leave(rig.cs, "u1");
	fake_pass(29000);
	assert_int_equal(commands_ignored(rig.cs, "u1"), 0);
	fake_pass(2000);
	assert_int_equal(commands_ignored(rig.cs, "u1"), 1u << SPEC_SUSPEND);
	assert_int_equal(commands_pending(rig.cs, "u1"), 0);
	assert_int_equal(rig.n_ended, 0); /* the user who gave the command no longer waits */
	assert_int_equal(rig.n_changed, 2);
	/* The next command replaces the one that was ignored. */
	begin();
	assert_int_equal(commands_ignored(rig.cs, "u1"), 0);
	commands_leave(rig.cs, "u1");
	assert_int_equal(rig.n_ended, 0);
}

/* The job shows the outcome before the reply arrives, and then the user's process stops waiting. */
static void test_left_when_shown(void **state)
{
	begin();
	commands_sent(rig.cs, "u1", &view, NULL);
	rig.outcome = SPEC_CONTROL_OBEYED;
	assert_true(commands_check(rig.cs, "u1", &control, &job));
	commands_leave(rig.cs, "u1");
	commands_shown(rig.cs, "u1", view.phase);
	assert_int_equal(rig.n_ended, 0);
	begin();
}

static void test_gone(void **state)
{
	take();
	commands_gone(rig.cs, "u1");
	assert_int_equal(rig.n_ended, 1);
	assert_int_equal(rig.end, COMMAND_GONE);
	assert_null(fake.timers);
	commands_gone(rig.cs, "u1");
	assert_int_equal(rig.n_ended, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_obeyed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_shown_before_taken, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ignored, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_when_shown, setup, teardown),
		cmocka_unit_test_setup_teardown(test_gone, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
