/* SPDX-License-Identifier: MIT */
/* Which job NAME.job shows according to the records: after changes, removals and restarts. */
#include <errno.h>

#include "backend/jobs/records.h"
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/backend/jobs/record_rig.h"

static struct records *rs;
static char keys[8][JOB_FILES_UUID]; /* keys of the launches, in order */
static int failed;		     /* last error of a request */

static void on_done(void *data, int err)
{
	failed = err;
}

static void on_loaded(void *data, int err, const char *text)
{
	assert_int_equal(err, 0);
}

static void begin(void)
{
	rs = records_new(NULL, dir, false);
	records_load(rs, on_loaded, NULL);
	fake_run();
}

static void end(void)
{
	records_stop(rs, fake_nothing, NULL);
	fake_run();
	records_free(rs);
	fake_forget_timers();
}

static void restart(void)
{
	end();
	begin();
}

static int setup_files(void **state)
{
	setup(state);
	begin();
	return 0;
}

static int teardown_files(void **state)
{
	end();
	return teardown(state);
}

/* Create launch number I of FILE. */
static struct record *launch(size_t i, const char *file, enum record_state state)
{
	const struct record_rest rest = {.document = file, .len = strlen(file)};
	struct spec_head *h;
	struct record *r;

	assert_int_equal(job_files_next_uuid(records_files(rs), keys[i]), 0);
	h = head_of(keys[i], state);
	h->own = true;
	spec_set(&h->file, file);
	free(h->id);
	h->id = text_print("job-%zu", i);
	r = records_make(rs, h, &rest, NULL, on_done, NULL);
	fake_run();
	assert_int_equal(failed, 0);
	return r;
}

static void change(size_t i, enum record_state state)
{
	records_commit(records_by_key(rs, keys[i]), &(struct record_change){.state = state},
		       on_done, NULL);
	fake_run();
}

static void drop(size_t i)
{
	records_remove(records_by_key(rs, keys[i]), false, on_done, NULL);
	fake_run();
}

/* Assert that NAME.job of FILE shows WANT: PLACE/ID, or "" if there is no such link. */
static void expect(const char *file, const char *want)
{
	struct backend_file found = {0};
	const int err = job_files_find(records_files(rs), file, &found);
	cleanup_free char *id = found.id, *link = NULL;

	link = text_print("%s%s", found.place == BACKEND_HISTORY ? "history/" : "jobs/", id);
	assert_int_equal(err, *want ? 0 : -ENOENT);
	assert_string_equal(err ? "" : link, want);
}

/*
 * A launch under way does not change the link until its job is shown. Then the link shows the job,
 * wherever the job is.
 */
static void test_life(void **state)
{
	launch(1, "a.yaml", RECORD_LIVE);
	expect("a.yaml", "jobs/job-1");
	launch(2, "a.yaml", RECORD_SUBMITTING);
	expect("a.yaml", "jobs/job-1");
	records_show(rs, keys[2], true);
	expect("a.yaml", "jobs/job-2");
	/* The launch is refused. */
	records_show(rs, keys[2], false);
	drop(2);
	expect("a.yaml", "jobs/job-1");
	launch(3, "a.yaml", RECORD_HELD);
	expect("a.yaml", "jobs/job-3");
	change(3, RECORD_NEVER);
	expect("a.yaml", "history/job-3");
	launch(4, "a.yaml", RECORD_SUBMITTING);
	change(4, RECORD_LIVE);
	expect("a.yaml", "jobs/job-4");
	change(4, RECORD_HISTORY);
	expect("a.yaml", "history/job-4");
	expect("b.yaml", "");
}

/* The reply to the earlier launch arrives last. */
static void test_order(void **state)
{
	launch(1, "a.yaml", RECORD_SUBMITTING);
	launch(2, "a.yaml", RECORD_SUBMITTING);
	change(2, RECORD_LIVE);
	change(1, RECORD_LIVE);
	expect("a.yaml", "jobs/job-2");
	assert_true(strcmp(keys[1], keys[2]) < 0);
}

/*
 * A link that was removed, or whose job was removed, does not show an older job instead. This also
 * holds after a restart.
 */
static void test_unlink(void **state)
{
	struct record *r;
	char key[JOB_FILES_UUID], **files;

	launch(1, "a.yaml", RECORD_LIVE);
	launch(2, "a.yaml", RECORD_LIVE);
	r = launch(3, "b.yaml", RECORD_LIVE);
	launch(4, "b.yaml", RECORD_SUBMITTING);
	drop(2);
	expect("a.yaml", "");
	assert_int_equal(job_files_unlink(records_files(rs), "a.yaml", key), -ENOENT);
	assert_int_equal(job_files_unlink(records_files(rs), "b.yaml", key), 0);
	assert_string_equal(key, keys[3]);
	expect("b.yaml", "");
	/* The state may change meanwhile. */
	change(3, RECORD_HISTORY);
	expect("b.yaml", "");
	records_note(r, &(struct record_change){.state = RECORD_HISTORY, .unlinked = true}, 0);
	fake_run();
	restart();
	expect("a.yaml", "");
	expect("b.yaml", "");
	change(4, RECORD_LIVE);
	expect("b.yaml", "jobs/job-4");
	assert_int_equal(job_files_list(records_files(rs), &files), 1);
	assert_string_equal(files[0], "b.yaml");
	free(files[0]);
	free(files);
}

/* If the newest jobs are removed at the same time, no older job reappears, also after a restart. */
static void test_removed_together(void **state)
{
	for (size_t i = 1; i <= 3; i++)
		launch(i, "a.yaml", RECORD_LIVE);
	records_remove(records_by_key(rs, keys[3]), false, on_done, NULL);
	records_remove(records_by_key(rs, keys[2]), false, on_done, NULL);
	fake_run();
	expect("a.yaml", "");
	restart();
	expect("a.yaml", "");
	assert_non_null(records_by_key(rs, keys[1]));
}

/*
 * A launch that was interrupted by a crash is not shown until its job appears. Launch numbers
 * continue to grow.
 */
static void test_restart(void **state)
{
	int64_t before;

	launch(1, "a.yaml", RECORD_LIVE);
	launch(2, "a.yaml", RECORD_SUBMITTING);
	restart();
	expect("a.yaml", "jobs/job-1");
	before = job_files_changed(records_files(rs));
	records_show(rs, keys[2], true);
	assert_true(job_files_changed(records_files(rs)) > before);
	expect("a.yaml", "jobs/job-2");
	launch(3, "a.yaml", RECORD_LIVE);
	assert_true(strcmp(keys[2], keys[3]) < 0);
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup_files, teardown_files)
	const struct CMUnitTest tests[] = {
		TEST(test_life),    TEST(test_order),
		TEST(test_unlink),  TEST(test_removed_together),
		TEST(test_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
