/* SPDX-License-Identifier: MIT */
/*
 * The disk space of the output, when output is counted and removed at the same time. The test
 * decides when the pool works.
 */
#include "tests/unit/backend/output/output_rig.h"

#include "backend/output/room.h"

static struct files *files;
static struct room *room;

static int setup(void **state)
{
	static const struct output_events no_events;
	cleanup_free char *path = NULL;

	rig_setup(state);
	path = rig_path("");
	files = files_new(NULL, open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), &no_events);
	room = room_new(NULL, files);
	return 0;
}

static int teardown(void **state)
{
	room_free(room);
	files_unref(files);
	return rig_teardown(state);
}

/* Create the folder of job ID, with BYTES of output. */
static void make_job(const char *id, unsigned bytes)
{
	cleanup_free char *logs = text_print("%s/logs", id), *log = text_print("%s/logs/k", id);
	cleanup_free char *path = rig_path(log);

	rig_mkdir(id);
	rig_mkdir(logs);
	rig_put(log, "");
	assert_int_equal(truncate(path, bytes), 0);
}

static void remove_job(const char *id)
{
	room_remove(room_removal_new(room, id, rig_on_removed, NULL));
}

/* Take the next job from the pool and let it work. Its callback is called by report. */
static struct fake_job *work(void)
{
	struct fake_job *j = fake.pool;

	assert_non_null(j);
	DL_DELETE(fake.pool, j);
	j->work(j->data);
	return j;
}

static void report(struct fake_job *j)
{
	j->fn(j->data);
	free(j);
}

/*
 * Output is counted, and removed. A folder of an interrupted removal goes with the first count. The
 * target of a symbolic link is neither counted twice nor removed.
 */
static void test_counted(void **state)
{
	cleanup_free char *link = rig_path("a/logs/link"), *to = rig_path("b/logs");

	make_job("a", 1000);
	make_job("b", 20);
	make_job(".removed-7", 300);
	assert_int_equal(symlink(to, link), 0);
	room_count(room);
	fake_run();
	assert_int_equal(room_bytes(room), 1020);
	assert_false(rig_there(".removed-7"));
	remove_job("a");
	assert_int_equal(rig.removed, 0);
	fake_run();
	assert_int_equal(rig.removed, 1);
	assert_int_equal(room_bytes(room), 20);
	assert_false(rig_there("a"));
	assert_true(rig_there("b/logs/k"));
	/* More output was removed than was counted. */
	room_add(room, -1000);
	assert_int_equal(room_bytes(room), 0);
	room_remove(room_removal_new(room, "b", NULL, NULL));
	fake_run();
	assert_int_equal(room_bytes(room), 0);
	assert_false(rig_there("b"));
}

/*
 * A folder contains something that can't be removed because it is nested too deeply. The folder is
 * moved away all the same, and a message reports it.
 */
static void test_left(void **state)
{
	cleanup_free char *said = NULL;
	char path[128];
	size_t len;
	int n;

	make_job("a", 10);
	n = snprintf(path, sizeof(path), "%s/output/a", rig.dir);
	for (int i = 0; i < 20; i++) {
		n += snprintf(path + n, sizeof(path) - (size_t)n, "/d");
		assert_int_equal(mkdir(path, 0700), 0);
	}
	remove_job("a");
	fake_run();
	assert_int_equal(rig.removed, 1);
	assert_false(rig_there("a"));
	said = diag_text(&len);
	assert_non_null(strstr(said, "a: some of its files can't be removed: Directory not empty"));
}

/*
 * Removals at the same time do not collide. Neither does a removal after one that left something
 * behind.
 */
static void test_removed_again(void **state)
{
	make_job(".removed-a", 300);
	make_job("a", 10);
	make_job("b", 20);
	remove_job("a");
	remove_job("b");
	fake_run();
	assert_int_equal(rig.removed, 2);
	assert_false(rig_there("a") || rig_there("b") || rig_there(".removed-a"));
}

/*
 * A log grows during a count, which may or may not have included it. The sum is never too small,
 * and exact after a second count.
 */
static void test_grown_meanwhile(void **state)
{
	struct fake_job *count;

	make_job("a", 1000);
	room_count(room);
	count = work();
	room_add(room, 1000);
	assert_int_equal(room_bytes(room), 1000);
	report(count);
	assert_int_equal(room_bytes(room), 2000);
	fake_run();
	assert_int_equal(room_bytes(room), 1000);
}

/*
 * Output that is removed during a count is not counted, neither in the first count nor in the exact
 * count after it. The count has seen the folder, or not. A log of another job may grow meanwhile.
 */
static void test_removed_meanwhile(void **state)
{
	make_job("b", 20);
	for (int i = 0; i < 4; i++) {
		struct fake_job *count, *removal;

		make_job("a", 1000);
		room_count(room);
		if (i % 2) {
			count = work();
			room_add(room, 7);
			report(count);
		}
		if (i / 2) {
			count = fake.pool;
			assert_non_null(count);
			DL_DELETE(fake.pool, count);
			remove_job("a");
			removal = work();
			count->work(count->data);
			report(removal);
		} else {
			count = work();
			remove_job("a");
			fake_run();
		}
		report(count);
		fake_run();
		assert_int_equal(room_bytes(room), 20);
	}
}

/*
 * The folder is renamed before it would be counted, and the removal ends after the count. The count
 * is still exact.
 */
static void test_removal_outlasts_count(void **state)
{
	struct fake_job *removal;

	make_job("a", 1000);
	make_job("b", 2000);
	remove_job("a");
	removal = work();
	room_count(room);
	fake_run();
	assert_int_equal(room_bytes(room), 2000);
	report(removal);
	fake_run();
	assert_int_equal(room_bytes(room), 2000);
}

int main(void)
{
#define room_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		room_test(test_counted),	   room_test(test_left),
		room_test(test_removed_again),	   room_test(test_grown_meanwhile),
		room_test(test_removed_meanwhile), room_test(test_removal_outlasts_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
