/* SPDX-License-Identifier: MIT */
/*
 * A file system that shows a directory, and hangs or fails where a test requests it. The file HANG
 * has one line:
 *
 *         CALL PATTERN ERRNO TIMES SERIAL
 *
 * CALL and PATTERN are extended regular expressions. CALL must match the whole name of a call,
 * PATTERN a part of its path. While the line exists, matching calls fail with ERRNO; if ERRNO is 0,
 * they wait until the line changes. If TIMES is greater than 0, at most TIMES calls are affected; a
 * new SERIAL starts a new count. The file HANG.told gets a line "CALL PATH" for each affected call.
 * If a test has created HANG.seen, that file gets a line for every call. A process that is killed
 * while it waits gets no answer; other signals don't end the wait.
 *
 *         slow_disk DIRECTORY HANG MOUNTPOINT
 */
#define FUSE_USE_VERSION 314

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse.h>
#include <pthread.h>
#include <regex.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>

#include "spec/base/base.h"

#define WAIT_NS 20000000L

struct rule {
	char call[64], pattern[1024];
	int error;
	unsigned times, serial;
};

static int dir_fd;
static const char *hang, *told, *seen;

/* Return PATH relative to the directory, for calls such as openat. */
static const char *below(const char *path)
{
	return path[1] ? path + 1 : ".";
}

static void note(const char *file, int flags, const char *call, const char *path)
{
	cleanup_fd int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC | flags, 0600);

	if (fd >= 0)
		dprintf(fd, "%s %s\n", call, path);
}

static bool read_rule(struct rule *ret)
{
	cleanup_file FILE *f = fopen(hang, "re");

	return f && fscanf(f, "%63s %1023s %d %u %u", ret->call, ret->pattern, &ret->error,
			   &ret->times, &ret->serial) == 5;
}

static bool matches(const char *text, const char *pattern)
{
	regex_t re;
	bool found;

	if (regcomp(&re, pattern, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	found = regexec(&re, text, 0, NULL, 0) == 0;
	regfree(&re);
	return found;
}

/* True if R matches this call and has not affected TIMES calls yet. Count the call. */
static bool is_met(const struct rule *r, const char *call, const char *path)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static unsigned serial, met;
	bool may;

	if (!matches(call, r->call) || !matches(path, r->pattern))
		return false;
	pthread_mutex_lock(&mutex);
	met = serial == r->serial ? met + 1 : 1;
	serial = r->serial;
	may = !r->times || met <= r->times;
	pthread_mutex_unlock(&mutex);
	return may;
}

/*
 * True if the thread TID was killed. The kernel does not end the thread before its call is
 * answered.
 */
static bool is_killed(pid_t tid)
{
	char path[64], line[128];
	unsigned long long pending;
	cleanup_file FILE *f = NULL;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "SigPnd: %llx", &pending) == 1)
			return pending & 1ULL << (SIGKILL - 1);
	return true;
}

/*
 * Wait or fail as the test requests. Return 0 to let the call continue, or a negative errno to
 * return instead.
 */
static int meet(const char *call, const char *path)
{
	const struct timespec t = {.tv_nsec = WAIT_NS};
	struct rule r, now;

	note(seen, 0, call, path);
	if (!read_rule(&r) || !is_met(&r, call, path))
		return 0;
	note(told, O_CREAT, call, path);
	if (r.error)
		return -r.error;
	do {
		if (fuse_interrupted() && is_killed(fuse_get_context()->pid))
			return -EINTR;
		nanosleep(&t, NULL);
	} while (read_rule(&now) && now.serial == r.serial);
	return 0;
}

static int result(int done)
{
	return done < 0 ? -errno : 0;
}

static int on_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	int err = meet("getattr", path);

	if (err)
		return err;
	return result(fi ? fstat((int)fi->fh, st)
			 : fstatat(dir_fd, below(path), st, AT_SYMLINK_NOFOLLOW));
}

static int on_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t off,
		      struct fuse_file_info *fi, enum fuse_readdir_flags flags)
{
	int err = meet("readdir", path);
	int fd = err ? err : openat(dir_fd, below(path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	(void)off;
	(void)fi;
	(void)flags;
	if (!d)
		return err ? err : -errno;
	while ((e = readdir(d))) {
		const struct stat st = {.st_ino = e->d_ino, .st_mode = (mode_t)e->d_type << 12};

		fill(buf, e->d_name, &st, 0, 0);
	}
	closedir(d);
	return 0;
}

static int on_open(const char *path, struct fuse_file_info *fi)
{
	int err = meet("open", path);
	int fd = err ? err
		     : openat(dir_fd, below(path), (fi->flags & ~(O_CREAT | O_EXCL)) | O_CLOEXEC);

	fi->fh = (uint64_t)fd;
	return err ? err : result(fd);
}

static int on_create(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	int err = meet("create", path);
	int fd = err ? err : openat(dir_fd, below(path), fi->flags | O_CREAT | O_CLOEXEC, mode);

	fi->fh = (uint64_t)fd;
	return err ? err : result(fd);
}

static int on_read(const char *path, char *buf, size_t n, off_t at, struct fuse_file_info *fi)
{
	int err = meet("read", path);
	ssize_t got = err ? err : pread((int)fi->fh, buf, n, at);

	return err ? err : got < 0 ? -errno : (int)got;
}

static int on_write(const char *path, const char *buf, size_t n, off_t at,
		    struct fuse_file_info *fi)
{
	int err = meet("write", path);
	ssize_t done = err ? err : pwrite((int)fi->fh, buf, n, at);

	return err ? err : done < 0 ? -errno : (int)done;
}

static int on_release(const char *path, struct fuse_file_info *fi)
{
	(void)path;
	return result(close((int)fi->fh));
}

/* Each write was passed on immediately, so there is nothing to do here. */
static int on_flush(const char *path, struct fuse_file_info *fi)
{
	return (fcntl((int)fi->fh, F_GETFL) & O_ACCMODE) != O_RDONLY ? meet("close", path) : 0;
}

static int on_flock(const char *path, struct fuse_file_info *fi, int op)
{
	int err = meet("flock", path);

	return err ? err : result(flock((int)fi->fh, op));
}

static int on_fsyncdir(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)data_only;
	(void)fi;
	return meet("fsyncdir", path);
}

static int on_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	int err = meet("fsync", path);

	(void)data_only;
	return err ? err : result(fdatasync((int)fi->fh));
}

static int on_mkdir(const char *path, mode_t mode)
{
	int err = meet("mkdir", path);

	return err ? err : result(mkdirat(dir_fd, below(path), mode));
}

/* The socket of a helper is a name like any other; nothing is sent through it here. */
static int on_mknod(const char *path, mode_t mode, dev_t dev)
{
	int err = meet("mknod", path);

	return err ? err : result(mknodat(dir_fd, below(path), mode, dev));
}

static int on_unlink(const char *path)
{
	int err = meet("unlink", path);

	return err ? err : result(unlinkat(dir_fd, below(path), 0));
}

static int on_rmdir(const char *path)
{
	int err = meet("rmdir", path);

	return err ? err : result(unlinkat(dir_fd, below(path), AT_REMOVEDIR));
}

static int on_symlink(const char *target, const char *path)
{
	int err = meet("symlink", path);

	return err ? err : result(symlinkat(target, dir_fd, below(path)));
}

static int on_link(const char *from, const char *to)
{
	int err = meet("link", to);

	return err ? err : result(linkat(dir_fd, below(from), dir_fd, below(to), 0));
}

static int on_readlink(const char *path, char *buf, size_t n)
{
	int err = meet("readlink", path);
	ssize_t got = err ? err : readlinkat(dir_fd, below(path), buf, n - 1);

	buf[max_of(got, (ssize_t)0)] = '\0';
	return err ? err : got < 0 ? -errno : 0;
}

static int on_rename(const char *from, const char *to, unsigned flags)
{
	int err = meet("rename", from);

	return err ? err : result(renameat2(dir_fd, below(from), dir_fd, below(to), flags));
}

static int on_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	int err = meet("truncate", path);
	cleanup_fd int fd = fi || err ? -1 : openat(dir_fd, below(path), O_WRONLY | O_CLOEXEC);

	return err ? err : result(ftruncate(fi ? (int)fi->fh : fd, size));
}

static int on_fallocate(const char *path, int mode, off_t at, off_t n, struct fuse_file_info *fi)
{
	int err = meet("fallocate", path);

	return err ? err : result(fallocate((int)fi->fh, mode, at, n));
}

static int on_chmod(const char *path, mode_t mode, struct fuse_file_info *fi)
{
	int err = meet("chmod", path);

	(void)fi;
	return err ? err : result(fchmodat(dir_fd, below(path), mode, 0));
}

static int on_chown(const char *path, uid_t uid, gid_t gid, struct fuse_file_info *fi)
{
	int err = meet("chown", path);

	(void)fi;
	return err ? err : result(fchownat(dir_fd, below(path), uid, gid, AT_SYMLINK_NOFOLLOW));
}

static int on_utimens(const char *path, const struct timespec times[2], struct fuse_file_info *fi)
{
	int err = meet("utimens", path);

	(void)fi;
	return err ? err : result(utimensat(dir_fd, below(path), times, AT_SYMLINK_NOFOLLOW));
}

static int on_statfs(const char *path, struct statvfs *st)
{
	int err = meet("statfs", path);

	return err ? err : result(fstatvfs(dir_fd, st));
}

/* The kernel caches nothing, so each access is a call. */
static void *on_init(struct fuse_conn_info *conn, struct fuse_config *config)
{
	(void)conn;
	config->entry_timeout = config->attr_timeout = config->negative_timeout = 0;
	config->direct_io = 1;
	config->nullpath_ok = 0;
	/* A file keeps its inode number when it is renamed or has two names. */
	config->use_ino = 1;
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
		.flock = on_flock,
		.fsync = on_fsync,
		.fsyncdir = on_fsyncdir,
		.mkdir = on_mkdir,
		.mknod = on_mknod,
		.unlink = on_unlink,
		.rmdir = on_rmdir,
		.symlink = on_symlink,
		.link = on_link,
		.readlink = on_readlink,
		.rename = on_rename,
		.truncate = on_truncate,
		.fallocate = on_fallocate,
		.chmod = on_chmod,
		.chown = on_chown,
		.utimens = on_utimens,
		.statfs = on_statfs,
	};
	/* Each call that hangs occupies a thread. */
	char name[] = "slow_disk", foreground[] = "-f", threads[] = "-omax_threads=500";
	char *args[] = {name, foreground, threads, argc == 4 ? argv[3] : NULL, NULL};
	cleanup_free char *met = NULL, *all = NULL;

	if (argc != 4 || asprintf(&met, "%s.told", argv[2]) < 0 ||
	    asprintf(&all, "%s.seen", argv[2]) < 0) {
		fputs("usage: slow_disk DIRECTORY HANG MOUNTPOINT\n", stderr);
		return 2;
	}
	hang = argv[2];
	told = met;
	seen = all;
	dir_fd = open(argv[1], O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir_fd < 0) {
		perror(argv[1]);
		return 1;
	}
	return fuse_main(4, args, &ops, NULL);
}
