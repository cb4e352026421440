/* SPDX-License-Identifier: MIT */
/*
 * A file system that shows a directory, and hangs where a test says: while the file HANG has the line "CALL PART",
 * each CALL on a path with PART in it waits. What waits is told in HANG.told, a line "CALL PATH" each. Nothing is
 * written for a process that is killed meanwhile.
 *
 *	slow_disk DIRECTORY HANG MOUNTPOINT
 */
#define FUSE_USE_VERSION 314

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "spec/base/base.h"

#define WAIT_NS 20000000L

static int dir_fd;
static const char *hang, *told;

/* A path as the *at calls want it. */
static const char *below(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static bool is_named(const char *call, const char *path)
{
	cleanup_file FILE *f = fopen(hang, "re");
	char which[32], part[256];

	while (f && fscanf(f, "%31s %255s", which, part) == 2)
		if (streq(which, call) && strstr(path, part))
			return true;
	return false;
}

static void wait_for_disk(const char *call, const char *path)
{
	const struct timespec t = {.tv_nsec = WAIT_NS};
	bool first = true;

	while (is_named(call, path) && !fuse_interrupted()) {
		cleanup_file FILE *f = first ? fopen(told, "ae") : NULL;

		if (f)
			fprintf(f, "%s %s\n", call, path);
		first = false;
		nanosleep(&t, NULL);
	}
}

static int result(int done)
{
	return done < 0 ? -errno : 0;
}

static int on_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	if (fi)
		return result(fstat((int)fi->fh, st));
	wait_for_disk("getattr", path);
	return result(fstatat(dir_fd, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int on_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	int fd = openat(dir_fd, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	(void)off;
	(void)fi;
	(void)flags;
	if (!d)
		return -errno;
	while ((e = readdir(d)))
		fill(buf, e->d_name, NULL, 0, 0);
	closedir(d);
	return 0;
}

static int on_open(const char *path, struct fuse_file_info *fi)
{
	int fd;

	wait_for_disk("open", path);
	fd = openat(dir_fd, below(path), (fi->flags & ~(O_CREAT | O_EXCL)) | O_CLOEXEC);
	fi->fh = (uint64_t)fd;
	return result(fd);
}

static int on_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	int fd;

	wait_for_disk("create", path);
	fd = openat(dir_fd, below(path), fi->flags | O_CREAT | O_CLOEXEC, mode);
	fi->fh = (uint64_t)fd;
	return result(fd);
}

static int on_read(const char *path, char *buf, size_t n, off_t at, struct fuse_file_info *fi)
{
	ssize_t got;

	wait_for_disk("read", path);
	got = pread((int)fi->fh, buf, n, at);
	return got < 0 ? -errno : (int)got;
}

static int on_write(const char *path, const char *buf, size_t n, off_t at,
		    struct fuse_file_info *fi)
{
	ssize_t done;

	wait_for_disk("write", path);
	if (fuse_interrupted())
		return -EINTR;
	done = pwrite((int)fi->fh, buf, n, at);
	return done < 0 ? -errno : (int)done;
}

static int on_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return result(close((int)fi->fh));
}

static int on_flush(const char *path, struct fuse_file_info *fi)
{
	if ((fcntl((int)fi->fh, F_GETFL) & O_ACCMODE) != O_RDONLY)
		wait_for_disk("close", path);
	return 0;
}

static int on_fsyncdir(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)path;
	(void)data_only;
	(void)fi;
	return 0;
}

static int on_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)path;
	(void)data_only;
	return result(fdatasync((int)fi->fh));
}

static int on_mkdir(const char *path, mode_t mode)
{
	wait_for_disk("mkdir", path);
	return result(mkdirat(dir_fd, below(path), mode));
}

/* The socket of a helper is a name like any other; nothing is sent through it here. */
static int on_mknod(const char *path, mode_t mode, dev_t dev)
{
	return result(mknodat(dir_fd, below(path), mode, dev));
}

static int on_unlink(const char *path)
{
	wait_for_disk("unlink", path);
	return result(unlinkat(dir_fd, below(path), 0));
}

static int on_rmdir(const char *path)
{
	return result(unlinkat(dir_fd, below(path), AT_REMOVEDIR));
}

static int on_symlink(const char *target, const char *path)
{
	return result(symlinkat(target, dir_fd, below(path)));
}

static int on_readlink(const char *path, char *buf, size_t n)
{
	ssize_t got = readlinkat(dir_fd, below(path), buf, n - 1);

	buf[max_of(got, (ssize_t)0)] = '\0';
	return got < 0 ? -errno : 0;
}

static int on_rename(const char *from, const char *to, unsigned flags)
{
	return result(renameat2(dir_fd, below(from), dir_fd, below(to), flags));
}

static int on_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	cleanup_fd int fd = fi ? -1 : openat(dir_fd, below(path), O_WRONLY | O_CLOEXEC);

	return result(ftruncate(fi ? (int)fi->fh : fd, size));
}

static int on_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	(void)fi;
	return result(fchmodat(dir_fd, below(path), mode, 0));
}

static int on_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
	(void)fi;
	return result(utimensat(dir_fd, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static int on_statfs(const char *path, struct statvfs *st)
{
	(void)path;
	return result(fstatvfs(dir_fd, st));
}

/* Nothing is remembered by the kernel: each look is a call. */
static void *on_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	(void)conn;
	config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
	config->direct_io = 1;
	config->nullpath_ok = 0;
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct fuse_operations ops = {
		.init = on_init,
		.getattr = on_getattr,
		.readdir = on_readdir,
		.open = on_open,
		.create = on_create,
		.read = on_read,
		.write = on_write,
		.flush = on_flush,
		.release = on_release,
		.fsync = on_fsync,
		.fsyncdir = on_fsyncdir,
		.mkdir = on_mkdir,
		.mknod = on_mknod,
		.unlink = on_unlink,
		.rmdir = on_rmdir,
		.symlink = on_symlink,
		.readlink = on_readlink,
		.rename = on_rename,
		.truncate = on_truncate,
		.chmod = on_chmod,
		.utimens = on_utimens,
		.statfs = on_statfs,
	};
	/* Each call that hangs has a thread. */
	char name[] = "slow_disk", foreground[] = "-f", threads[] = "-omax_threads=500";
	char *args[] = {name, foreground, threads, argc == 4 ? argv[3] : NULL, NULL};
	cleanup_free char *file = NULL;

	if (argc != 4 || asprintf(&file, "%s.told", argv[2]) < 0) {
		fputs("usage: slow_disk DIRECTORY HANG MOUNTPOINT\n", stderr);
		return 2;
	}
	hang = argv[2];
	told = file;
	dir_fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0) {
		perror(argv[1]);
		return 1;
	}
	return fuse_main(4, args, &ops, NULL);
}
