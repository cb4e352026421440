/* SPDX-License-Identifier: MIT */
/* Which job NAME.job shows according to the records: after changes, removals and restarts. */
#include <errno.h>

#include "backend/jobs/records.h"
#include "spec/base/encode.h"
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/backend/jobs/assert_file.h"
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

static void assert_job(const char *file, const char *id, enum backend_place place)
{
	assert_file(records_files(rs), file, id, place);
}

/*
 * A launch under way does not change the link until its job is shown. Then the link shows the job,
 * wherever the job is.
 */
static void test_life(void **state)
{
	launch(1, "a.yaml", RECORD_LIVE);
	assert_job("a.yaml", "job-1", BACKEND_JOBS);
	launch(2, "a.yaml", RECORD_SUBMITTING);
	assert_job("a.yaml", "job-1", BACKEND_JOBS);
	records_show(rs, keys[2], true);
	assert_job("a.yaml", "job-2", BACKEND_JOBS);
	/* The launch is refused. */
	records_show(rs, keys[2], false);
	drop(2);
	assert_job("a.yaml", "job-1", BACKEND_JOBS);
	launch(3, "a.yaml", RECORD_HELD);
	assert_job("a.yaml", "job-3", BACKEND_JOBS);
	change(3, RECORD_NEVER);
	assert_job("a.yaml", "job-3", BACKEND_HISTORY);
	launch(4, "a.yaml", RECORD_SUBMITTING);
	change(4, RECORD_LIVE);
	assert_job("a.yaml", "job-4", BACKEND_JOBS);
	change(4, RECORD_HISTORY);
	assert_job("a.yaml", "job-4", BACKEND_HISTORY);
	assert_job("b.yaml", NULL, 0);
}

/* The reply to the earlier launch arrives last. */
static void test_order(void **state)
{
	launch(1, "a.yaml", RECORD_SUBMITTING);
	launch(2, "a.yaml", RECORD_SUBMITTING);
	change(2, RECORD_LIVE);
	change(1, RECORD_LIVE);
	assert_job("a.yaml", "job-2", BACKEND_JOBS);
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
	assert_job("a.yaml", NULL, 0);
	assert_int_equal(job_files_unlink(records_files(rs), "a.yaml", key), -ENOENT);
	assert_int_equal(job_files_unlink(records_files(rs), "b.yaml", key), 0);
	assert_string_equal(key, keys[3]);
	assert_job("b.yaml", NULL, 0);
	/* The state may change meanwhile. */
	change(3, RECORD_HISTORY);
	assert_job("b.yaml", NULL, 0);
	records_note(r, &(struct record_change){.state = RECORD_HISTORY, .unlinked = true}, 0);
	fake_run();
	end();
	begin();
	assert_job("a.yaml", NULL, 0);
	assert_job("b.yaml", NULL, 0);
	change(4, RECORD_LIVE);
	assert_job("b.yaml", "job-4", BACKEND_JOBS);
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
	assert_job("a.yaml", NULL, 0);
	end();
	begin();
	assert_job("a.yaml", NULL, 0);
	assert_non_null(records_by_key(rs, keys[1]));
}

/*
 * A launch that was interrupted by a crash is not shown until its job appears. Launch numbers
 * continue to grow.
 */
static void test_restart(void **state)
{
	int64_t before;
	char digest[65];

	launch(1, "a.yaml", RECORD_LIVE);
	launch(2, "a.yaml", RECORD_SUBMITTING);
	end();
	begin();
	assert_job("a.yaml", "job-1", BACKEND_JOBS);
	before = job_files_changed(records_files(rs));
	records_show(rs, keys[2], true);
	assert_true(job_files_changed(records_files(rs)) > before);
	assert_job("a.yaml", "job-2", BACKEND_JOBS);
	launch(3, "a.yaml", RECORD_LIVE);
	assert_true(strcmp(keys[2], keys[3]) < 0);
	spec_sha256("a.yaml", 6, digest);
	assert_true(job_files_know(records_files(rs), digest));
	spec_sha256("b.yaml", 6, digest);
	assert_false(job_files_know(records_files(rs), digest));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_life, setup_files, teardown_files),
		cmocka_unit_test_setup_teardown(test_order, setup_files, teardown_files),
		cmocka_unit_test_setup_teardown(test_unlink, setup_files, teardown_files),
		cmocka_unit_test_setup_teardown(test_removed_together, setup_files, teardown_files),
		cmocka_unit_test_setup_teardown(test_restart, setup_files, teardown_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
