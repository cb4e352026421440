/* SPDX-License-Identifier: MIT */
/* Accesses the state directory. Each function except disk_list makes one system call. */
#include "backend/base/disk.h"
#include "spec/base/time.h"

#include <errno.h>
#include <fcntl.h>

#define ENTRIES 4096

/* Evaluate CALL until it does not fail with EINTR. The result is its value, or a negative errno. */
#define retry(call)                                                                                \
	({                                                                                         \
		__typeof__(call) r_;                                                               \
		do                                                                                 \
			r_ = (call);                                                               \
		while (r_ < 0 && errno == EINTR);                                                  \
		r_ < 0 ? -errno : r_;                                                              \
	})

int disk_open(int at, const char *path, int flags)
{
	return retry(openat(at, path, flags | O_NOFOLLOW | O_CLOEXEC, 0600));
}

int disk_mkdir(int at, const char *path)
{
	return retry(mkdirat(at, path, 0700));
}

int disk_stat(int at, const char *path, struct stat *ret)
{
	return retry(fstatat(at, path, ret, AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH));
}

int disk_access(int at, const char *path, int mode)
{
	return retry(faccessat(at, path, mode, AT_EACCESS));
}

ssize_t disk_pread(int fd, void *buf, size_t n, uint64_t off)
{
	return retry(pread(fd, buf, n, (off_t)off));
}

ssize_t disk_pwrite(int fd, const void *buf, size_t n, uint64_t off)
{
	return retry(pwrite(fd, buf, n, (off_t)off));
}

ssize_t disk_append(int fd, const void *buf, size_t n)
{
	return retry(write(fd, buf, n));
}

int disk_truncate(int fd, uint64_t size)
{
	return retry(ftruncate(fd, (off_t)size));
}

int disk_reserve(int fd, uint64_t size, bool grow)
{
	return grow ? -posix_fallocate(fd, 0, (off_t)size)
		    : retry(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size));
}

int disk_sync(int fd)
{
	return retry(fsync(fd));
}

int disk_sync_data(int fd)
{
	return retry(fdatasync(fd));
}

int disk_rename(int from_at, const char *from, int to_at, const char *to)
{
	return retry(renameat(from_at, from, to_at, to));
}

int disk_chmod(int at, const char *path, mode_t mode)
{
	return *path ? retry(fchmodat(at, path, mode, 0)) : retry(fchmod(at, mode));
}

int disk_chown(int fd, uid_t uid, gid_t gid)
{
	return retry(fchown(fd, uid, gid));
}

int disk_unlink(int at, const char *path)
{
	return retry(unlinkat(at, path, 0));
}

int disk_rmdir(int at, const char *path)
{
	return retry(unlinkat(at, path, AT_REMOVEDIR));
}

int disk_touch(int at, const char *path, int64_t mtime_ns)
{
	const struct timespec mtime = spec_time_spec(mtime_ns);
	const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, mtime};

	return *path ? retry(utimensat(at, path, mtime_ns < 0 ? NULL : times, AT_SYMLINK_NOFOLLOW))
		     : retry(futimens(at, mtime_ns < 0 ? NULL : times));
}

/*
 * getdents64 is cheaper than opendir(3). This matters, because kxfs lists the directories of all
 * jobs when it starts.
 */
int disk_list(int at, const char *path, disk_name_fn fn, void *data)
{
	cleanup_fd int fd = disk_open(at, path, O_RDONLY | O_DIRECTORY);
	_Alignas(struct dirent64) char buf[ENTRIES];
	ssize_t n;
	int err = 0;

	if (fd < 0)
		return fd;
	while (!err && (n = getdents64(fd, buf, sizeof(buf))) != 0) {
		if (n < 0)
			return -errno;
		for (char *p = buf; !err && p < buf + n;) {
			const struct dirent64 *e = (const void *)p;

			if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
				err = fn(data, fd, e->d_name, e->d_type);
			p += e->d_reclen;
		}
	}
	return err;
}
