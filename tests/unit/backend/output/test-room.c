/* SPDX-License-Identifier: MIT */
/*
 * The disk space of the output, when output is counted and removed at the same time. The test
 * decides when the pool works.
 */
#include "tests/unit/backend/client/fake_net.h"
#include "tests/unit/scratch.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/base/diag.h"
#include "backend/output/room.h"

static struct {
	char dir[64];
	struct files *files;
	struct room *room;
	unsigned n_removed;
} rig;

static void on_removed(void *data, int err)
{
	assert_null(data);
	assert_int_equal(err, 0);
	rig.n_removed++;
}

static int setup(void **state)
{
	static const struct output_events no_events;

	memset(&rig, 0, sizeof(rig));
	memset(&fake, 0, sizeof(fake));
	fake.now = 1000;
	diag_setup(DIAG_DEBUG, false);
	strcpy(rig.dir, "/tmp/kxfs-room-XXXXXX");
	assert_non_null(mkdtemp(rig.dir));
	rig.files = files_new(NULL, open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), &no_events);
	rig.room = room_new(NULL, rig.files);
	return 0;
}

static int teardown(void **state)
{
	room_free(rig.room);
	files_unref(rig.files);
	return scratch_remove(rig.dir);
}

/* Create the folder of job ID, with BYTES of output. */
static void make_job(const char *id, unsigned bytes)
{
	static const char *const folders[] = {"", "/logs"};
	static const char *const names[] = {"/logs/k"};
	char path[128];

	for (size_t i = 0; i < array_size(folders); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", rig.dir, id, folders[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	for (size_t i = 0; i < array_size(names); i++) {
		int fd;

		snprintf(path, sizeof(path), "%s/%s%s", rig.dir, id, names[i]);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
		assert_true(fd >= 0);
		assert_int_equal(ftruncate(fd, bytes), 0);
		close(fd);
	}
}

static bool is_there(const char *path)
{
	char whole[128];

	snprintf(whole, sizeof(whole), "%s/%s", rig.dir, path);
	return access(whole, F_OK) == 0;
}

/* Call FN between the next work of the pool and the callback of that work. */
static void in_between(void (*fn)(void))
{
	struct fake_job *j = fake.pool;

	assert_non_null(j);
	DL_DELETE(fake.pool, j);
	j->work(j->data);
	fn();
	fake_run();
	j->fn(j->data);
	free(j);
}

static void test_counted(void **state)
{
	make_job("a", 1000);
	make_job("b", 20);
	room_count(rig.room);
	fake_run();
	assert_int_equal(room_bytes(rig.room), 1020);
	room_remove(room_removal_new(rig.room, "a", on_removed, NULL));
	assert_int_equal(rig.n_removed, 0);
	fake_run();
	assert_int_equal(rig.n_removed, 1);
	assert_int_equal(room_bytes(rig.room), 20);
	assert_false(is_there("a"));
	room_remove(room_removal_new(rig.room, "b", NULL, NULL));
	fake_run();
	assert_int_equal(room_bytes(rig.room), 0);
	assert_false(is_there("b"));
}

/*
 * A crash interrupted the removal of a job. The rest is removed. The target of a symbolic link is
 * neither counted nor removed.
 */
static void test_crash(void **state)
{
	char path[128], to[128];

	make_job("a", 10);
	make_job("b", 500);
	make_job(".removed-7", 300);
	snprintf(path, sizeof(path), "%s/a/logs/link", rig.dir);
	snprintf(to, sizeof(to), "%s/b/logs", rig.dir);
	assert_int_equal(symlink(to, path), 0);
	room_count(rig.room);
	fake_run();
	assert_int_equal(room_bytes(rig.room), 510);
	assert_false(is_there(".removed-7"));
	room_remove(room_removal_new(rig.room, "a", on_removed, NULL));
	fake_run();
	assert_true(is_there("b/logs/k"));
	/* More output was removed than was counted. */
	room_add(rig.room, -1000);
	assert_int_equal(room_bytes(rig.room), 0);
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
	n = snprintf(path, sizeof(path), "%s/a", rig.dir);
	for (int i = 0; i < 20; i++) {
		n += snprintf(path + n, sizeof(path) - (size_t)n, "/d");
		assert_int_equal(mkdir(path, 0700), 0);
	}
	room_remove(room_removal_new(rig.room, "a", on_removed, NULL));
	fake_run();
	assert_int_equal(rig.n_removed, 1);
	assert_false(is_there("a"));
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
	room_remove(room_removal_new(rig.room, "a", on_removed, NULL));
	room_remove(room_removal_new(rig.room, "b", on_removed, NULL));
	fake_run();
	assert_int_equal(rig.n_removed, 2);
	assert_false(is_there("a") || is_there("b") || is_there(".removed-a"));
}

static void grow(void)
{
	room_add(rig.room, 7); /* the count may or may not include this log */
}

static void remove_a(void)
{
	room_remove(room_removal_new(rig.room, "a", NULL, NULL));
}

/* Remove the folder right before it would be counted. Report the removal before the count ends. */
static void remove_before_count(void)
{
	struct fake_job *count = fake.pool, *removal;

	remove_a();
	removal = count->next;
	DL_DELETE(fake.pool, count);
	DL_DELETE(fake.pool, removal);
	removal->work(removal->data);
	count->work(count->data);
	removal->fn(removal->data);
	count->fn(count->data);
	free(removal);
	free(count);
}

/*
 * Output that is removed during a count is not counted, neither in the first count nor in the exact
 * count after it.
 */
static void test_removed_meanwhile(void **state)
{
	make_job("b", 20);
	for (int i = 0; i < 4; i++) {
		make_job("a", 1000);
		room_count(rig.room);
		if (i % 2)
			in_between(grow);
		if (i / 2)
			remove_before_count();
		else
			in_between(remove_a);
		fake_run();
		assert_int_equal(room_bytes(rig.room), 20);
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
	remove_a();
	removal = fake.pool;
	DL_DELETE(fake.pool, removal);
	removal->work(removal->data);
	room_count(rig.room);
	fake_run();
	assert_int_equal(room_bytes(rig.room), 2000);
	removal->fn(removal->data);
	free(removal);
	fake_run();
	assert_int_equal(room_bytes(rig.room), 2000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed_again, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed_meanwhile, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removal_outlasts_count, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
