/* SPDX-License-Identifier: MIT */
/* Changing records, on a real disk. The test provides the clock and the loop. */
#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "backend/jobs/records.h"
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/backend/jobs/record_rig.h"
#include "tests/unit/noted.h"

static struct records *rs;
/* These strings are noted when a request is done. */
static char made[] = "made", committed[] = "committed", removed[] = "removed";
static char first[] = "first", second[] = "second";
static bool is_sick; /* all syncs fail */

int fsync(int fd)
{
	errno = EIO;
	return is_sick ? -1 : (int)syscall(SYS_fsync, fd);
}

static void on_done(void *data, int err)
{
	note("%s %d", (const char *)data, err);
}

static void on_loaded(void *data, int err, const char *text)
{
	note("loaded %d%s", err, text ? text + strlen(dir) : "");
}

static char *hold_of(void *data, const struct record *r, const struct spec_head *next,
		     enum record_part part)
{
	return text_copy(next->state == RECORD_HELD ? "{\"hold\":true}" : "");
}

static void begin(const char *loaded)
{
	rs = records_new(NULL, dir, false);
	records_set_part(rs, RECORD_HOLD, hold_of, NULL);
	records_load(rs, on_loaded, NULL);
	fake_run();
	assert_done(loaded);
}

/* End the mount, start another one, and assert that LOADED is noted. */
static void begin_again(const char *loaded)
{
	records_stop(rs, fake_nothing, NULL);
	fake_run();
	records_free(rs);
	fake_forget_timers();
	begin(loaded);
}

static int setup_records(void **state)
{
	setup(state);
	begin("loaded 0");
	return 0;
}

static int teardown_records(void **state)
{
	records_stop(rs, fake_nothing, NULL);
	fake_run();
	records_free(rs);
	fake_forget_timers();
	forget_noted();
	return teardown(state);
}

static struct record *make(enum record_state state)
{
	struct spec_head *h = head_of(KEY_A, state);
	struct record *r;

	h->more->parts[RECORD_HOLD] = state == RECORD_HELD ? text_copy("{\"hold\":true}") : NULL;
	r = records_make(rs, h, &rest_of_test, NULL, on_done, made);
	fake_run();
	assert_done("made 0");
	return r;
}

static void commit(struct record *r, enum record_state state, const char *uid, int err)
{
	const struct record_change change = {.state = state, .uid = uid};
	cleanup_free char *want = text_print("committed %d", err);

	records_commit(r, &change, on_done, committed);
	fake_run();
	assert_done(want);
}

static enum record_state state_of(const char *key)
{
	const struct record *r = records_by_key(rs, key);

	assert_non_null(r);
	return record_head(r)->state;
}

static bool has_hold(void)
{
	cleanup_free char *text = read_text("jobs/" KEY_A);

	return strstr(text, "\"hold\":{");
}

/* A held job, until it is in the history. When a commit is done, the new state is on disk. */
static void test_life(void **state)
{
	struct record *r = make(RECORD_HELD);

	assert_true(has_hold());
	commit(r, RECORD_SUBMITTING, NULL, 0);
	assert_true(record_head(r)->held);
	assert_false(has_hold());
	begin_again("loaded 0");
	r = records_by_key(rs, KEY_A);
	assert_int_equal(record_head(r)->state, RECORD_SUBMITTING);
	assert_true(record_head(r)->held);
	records_note(r, &(struct record_change){.state = RECORD_LIVE, .uid = "u"}, 500);
	assert_int_equal(record_head(r)->state, RECORD_LIVE);
	assert_false(record_head(r)->held);
	fake_pass(500);
	begin_again("loaded 0");
	r = records_by_key(rs, KEY_A);
	assert_string_equal(record_head(r)->uid, "u");
	commit(r, RECORD_HISTORY, NULL, 0);
	begin_again("loaded 0");
	assert_int_equal(state_of(KEY_A), RECORD_HISTORY);
	records_remove(records_by_key(rs, KEY_A), true, on_done, removed);
	fake_run();
	assert_done("removed 0");
	assert_null(records_by_key(rs, KEY_A));
	assert_false(exists("jobs/" KEY_A));
}

/*
 * A launch was definitely refused. The job is held again, and its earlier conditions are removed.
 */
static void test_refused(void **state)
{
	struct record *r = make(RECORD_HELD);

	commit(r, RECORD_SUBMITTING, NULL, 0);
	commit(r, RECORD_HELD, NULL, 0);
	assert_false(record_head(r)->held);
	commit(r, RECORD_NEVER, NULL, 0);
	begin_again("loaded 0");
	assert_int_equal(state_of(KEY_A), RECORD_NEVER);
}

/* Make a record in state FROM, and change its state to TO, or remove it if TO is -1. */
static void make_and_change(enum record_state from, int to)
{
	struct record *r = records_make(rs, head_of(KEY_B, from), &rest_of_test, NULL, NULL, NULL);

	fake_run();
	if (to < 0)
		records_remove(r, true, NULL, NULL);
	else
		records_commit(r, &(struct record_change){.state = (enum record_state)to}, NULL,
			       NULL);
	fake_run();
}

/*
 * Forbidden changes abort the program. LIVE never changes back, and a held job does not silently
 * become history, or vanish.
 */
static void test_forbidden(void **state)
{
	static const struct {
		enum record_state from;
		int to;
	} changes[] = {
		{RECORD_LIVE, RECORD_HELD},
		{RECORD_LIVE, RECORD_SUBMITTING},
		{RECORD_LIVE, RECORD_NEVER},
		{RECORD_HELD, RECORD_LIVE},
		{RECORD_SUBMITTING, RECORD_HELD},
		{RECORD_HELD, RECORD_HISTORY},
		{RECORD_HELD, -1},
	};

	for (size_t i = 0; i < array_size(changes); i++) {
		pid_t pid = fork();
		int status;

		if (pid == 0) {
			assert_non_null(freopen("/dev/null", "w", stderr));
			signal(SIGABRT, SIG_DFL);
			make_and_change(changes[i].from, changes[i].to);
			_exit(0);
		}
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

/*
 * If the disk refuses a commit, nothing changes. The file matches the table, also after a restart.
 */
static void test_commit_fails(void **state)
{
	struct record *r = make(RECORD_HELD);

	is_sick = true;
	commit(r, RECORD_SUBMITTING, NULL, -EIO);
	assert_int_equal(record_head(r)->state, RECORD_HELD);
	is_sick = false;
	fake_pass(2000);
	begin_again("loaded 0");
	assert_int_equal(state_of(KEY_A), RECORD_HELD);
	assert_true(has_hold());
}

/*
 * A record is moved to the history without a sync, but not while another change of it is under way.
 */
static void test_mark(void **state)
{
	struct record *r = make(RECORD_LIVE);

	is_sick = true;
	records_mark(r, on_done, committed);
	fake_run();
	assert_done("committed 0");
	assert_int_equal(record_head(r)->state, RECORD_HISTORY);
	records_mark(r, on_done, committed);
	fake_run();
	assert_done("committed -116");
	is_sick = false;
	begin_again("loaded 0");
	assert_int_equal(state_of(KEY_A), RECORD_HISTORY);
	commit(records_by_key(rs, KEY_A), RECORD_LIVE, NULL, 0);
}

/* A record that can't be written does not exist afterwards. */
static void test_make_fails(void **state)
{
	bool left = false;

	is_sick = true;
	records_make(rs, head_of(KEY_A, RECORD_HELD), &rest_of_test, &left, on_done, made);
	fake_run();
	assert_done("made -5");
	is_sick = false;
	assert_true(left); /* its removal could not be synced */
	assert_null(records_by_key(rs, KEY_A));
	assert_false(exists("jobs/" KEY_A));
}

/* Requests for a record that can't be created are answered, too. */
static void test_behind_make(void **state)
{
	struct record *r;

	is_sick = true;
	records_make(rs, head_of(KEY_A, RECORD_LIVE), &rest_of_test, NULL, on_done, made);
	r = records_by_key(rs, KEY_A);
	records_commit(r, &(struct record_change){.state = RECORD_LIVE}, on_done, committed);
	records_remove(r, false, on_done, removed);
	fake_run();
	assert_done("made -5, committed -5, removed 0");
	is_sick = false;
	assert_null(records_by_key(rs, KEY_A));
}

/* A change that has already happened is written again and again until the disk accepts it. */
static void test_note(void **state)
{
	struct record *r = make(RECORD_SUBMITTING);
	size_t n = 0;

	is_sick = true;
	records_note(r, &(struct record_change){.state = RECORD_LIVE, .uid = "u"}, 0);
	while (fake_wait(120000) && ++n < 8)
		;
	assert_int_equal(n, 8);
	is_sick = false;
	while (fake_wait(120000))
		;
	begin_again("loaded 0");
	assert_int_equal(state_of(KEY_A), RECORD_LIVE);
}

/* kxfs is just recording that nothing was launched. Then the job appears. */
static void test_overtaken(void **state)
{
	struct record *r = make(RECORD_SUBMITTING);

	records_commit(r, &(struct record_change){.state = RECORD_NEVER}, on_done, first);
	records_note(r, &(struct record_change){.state = RECORD_LIVE, .uid = "u"}, 0);
	records_commit(r, &(struct record_change){.state = RECORD_LIVE, .why = "w"}, on_done,
		       second);
	fake_run();
	assert_done("first -116, second 0");
	fake_pass(2000);
	begin_again("loaded 0");
	assert_int_equal(state_of(KEY_A), RECORD_LIVE);
	assert_string_equal(record_head(records_by_key(rs, KEY_A))->more->why, "w");
}

/*
 * Changes right before the end of the mount are written. If the disk refuses them, the end does not
 * wait for it.
 */
static void test_stop(void **state)
{
	struct record *r = make(RECORD_SUBMITTING);

	records_note(r, &(struct record_change){.state = RECORD_LIVE, .uid = "u"}, 5000);
	begin_again("loaded 0");
	r = records_by_key(rs, KEY_A);
	assert_string_equal(record_head(r)->uid, "u");
	is_sick = true;
	records_note(r, &(struct record_change){.state = RECORD_HISTORY}, 5000);
	records_stop(rs, fake_nothing, NULL);
	fake_run();
	is_sick = false;
	assert_false(fake_wait(100000));
}

static const struct spec_job *snapshot_of(void *data, const struct record *r)
{
	struct spec_job *job = spec_job_new(0, 0);

	spec_set(&job->id, "shown");
	return job;
}

/* A record is found by its job's uid. The snapshot is written together with the uid. */
static void test_seen(void **state)
{
	struct record *r = make(RECORD_SUBMITTING);
	cleanup_free char *part = NULL;

	assert_ptr_equal(records_next_unseen(rs, NULL), r);
	assert_null(records_next_unseen(rs, r));
	records_set_snapshot(rs, snapshot_of, NULL);
	records_note(r, &(struct record_change){.state = RECORD_LIVE, .uid = "u"}, 500);
	assert_null(records_next_unseen(rs, NULL));
	assert_ptr_equal(records_by_uid(rs, "u"), r);
	begin_again("loaded 0");
	r = records_by_uid(rs, "u");
	assert_non_null(r);
	part = record_take_part(r, RECORD_SNAPSHOT);
	assert_non_null(strstr(part, "\"id\":\"shown\""));
	records_remove(r, false, on_done, removed);
	assert_true(record_is_going(r));
	fake_run();
	assert_done("removed 0");
	assert_null(records_by_uid(rs, "u"));
}

/* The start creates the folder of the records. It fails if a power loss could undo that. */
static void test_folder_is_synced(void **state)
{
	cleanup_free char *jobs = path_of("jobs");

	assert_int_equal(rmdir(jobs), 0);
	is_sick = true;
	begin_again("loaded -5/jobs can't be used: Input/output error");
	is_sick = false;
	begin_again("loaded 0");
	assert_true(exists("jobs"));
	assert_int_equal(rmdir(jobs), 0);
	write_text("jobs", "not a folder");
	begin_again("loaded -20/jobs can't be used: Not a directory");
}

/*
 * The start removes files of writes that were cut off, and space that was reserved for a record
 * that does not exist.
 */
static void test_load(void **state)
{
	make(RECORD_LIVE);
	write_text("jobs/." KEY_A ".new", "half");
	write_text("jobs/." KEY_A ".room", "");
	write_text("jobs/." KEY_B ".room", "");
	begin_again("loaded 0");
	assert_false(exists("jobs/." KEY_A ".new") || exists("jobs/." KEY_B ".room"));
	assert_true(exists("jobs/." KEY_A ".room"));
	assert_non_null(records_by_key(rs, KEY_A));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup_records, teardown_records)
	const struct CMUnitTest tests[] = {
		TEST(test_life),	 TEST(test_refused), TEST(test_forbidden),
		TEST(test_commit_fails), TEST(test_mark),    TEST(test_make_fails),
		TEST(test_behind_make),	 TEST(test_note),    TEST(test_overtaken),
		TEST(test_stop),	 TEST(test_seen),    TEST(test_folder_is_synced),
		TEST(test_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
