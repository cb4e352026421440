/* SPDX-License-Identifier: MIT */
/* Each function of disk.h does what its comment says. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "backend/base/disk.h"
#include "tests/unit/unit.h"

static int see(void *data, int at, const char *name, unsigned char type)
{
	struct stat st;

	assert_int_equal(disk_stat(at, name, &st), 0);
	assert_int_equal(type == DT_DIR, S_ISDIR(st.st_mode));
	(*(unsigned *)data)++;
	return streq(name, "stop") ? -ECANCELED : 0;
}

static void test_calls(void **state)
{
	char dir[] = "/tmp/kxfs-disk-XXXXXX", buf[8];
	unsigned n = 0;
	struct stat st;
	int at, fd;

	assert_non_null(mkdtemp(dir));
	at = disk_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY);
	assert_true(at >= 0);
	fd = disk_open(at, "a", O_RDWR | O_CREAT | O_EXCL);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	assert_int_equal(disk_append(fd, "hello", 5), 5);
	assert_int_equal(disk_pwrite(fd, "J", 1, 0), 1);
	assert_int_equal(disk_pread(fd, buf, sizeof(buf), 1), 4);
	assert_int_equal(disk_truncate(fd, 2), 0);
	assert_int_equal(disk_sync(fd), 0);
	assert_int_equal(disk_sync_data(fd), 0);
	assert_int_equal(disk_stat(fd, "", &st), 0);
	assert_int_equal(st.st_size, 2);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(disk_touch(at, "a", INT64_C(1000000000000000001)), 0);
	assert_int_equal(disk_stat(at, "a", &st), 0);
	assert_int_equal(st.st_mtim.tv_sec, 1000000000);
	assert_int_equal(disk_mkdir(at, "b"), 0);
	assert_int_equal(disk_mkdir(at, "b"), -EEXIST);
	assert_int_equal(disk_list(at, ".", see, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(linkat(at, "a", at, "stop", 0), 0);
	assert_int_equal(disk_list(AT_FDCWD, dir, see, &n), -ECANCELED);
	assert_int_equal(disk_unlink(at, "stop"), 0);
	assert_int_equal(disk_rename(at, "a", at, "c"), 0);
	assert_int_equal(symlinkat("c", at, "l"), 0);
	assert_int_equal(disk_open(at, "l", O_RDONLY), -ELOOP);
	assert_int_equal(disk_unlink(at, "l"), 0);
	assert_int_equal(disk_unlink(at, "c"), 0);
	assert_int_equal(disk_unlink(at, "c"), -ENOENT);
	assert_int_equal(disk_rmdir(at, "b"), 0);
	close(fd);
	close(at);
	assert_int_equal(rmdir(dir), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
