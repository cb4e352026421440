/* SPDX-License-Identifier: MIT */
/*
 * Reads /proc; see writer.h. This runs on the FUSE thread, so it must not send a request to our own
 * mount. The fdinfo of a descriptor has the inode number of its file. A statx of the descriptor,
 * which the kernel answers from memory, shows whether the file is in our mount.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/base/file.h"
#include "fs/submit/writer.h"

/* Set *RET to the number after KEY in TEXT. Return false if there is none. */
static bool writer_number(const char *text, const char *key, int base, uint64_t *ret)
{
	const char *at = strstr(text, key);
	char *end;

	if (!at)
		return false;
	at += strlen(key);
	*ret = strtoull(at, &end, base);
	return end > at;
}

pid_t writer_parse_tgid(const char *status)
{
	uint64_t pid;

	return writer_number(status, "\nTgid:", 10, &pid) && pid <= INT32_MAX ? (pid_t)pid : 0;
}

bool writer_parse_exec(const char *status)
{
	uint64_t kib;

	return writer_number(status, "\nVmExe:", 10, &kib) && kib == 0;
}

int writer_parse_fdinfo(const char *text, struct writer_fd *ret)
{
	uint64_t flags;

	if (!writer_number(text, "\nflags:", 8, &flags) ||
	    !writer_number(text, "\nino:", 10, &ret->ino))
		return -EINVAL;
	ret->writable = (flags & O_ACCMODE) != O_RDONLY && !(flags & O_PATH);
	return 0;
}

/* Read a file of /proc into BUF, NUL-terminated, and truncate it if necessary. */
static int writer_read(int dir, const char *path, char *buf, size_t size)
{
	int fd cleanup_fd = openat(dir, path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = read(fd, buf, size - 1);
	if (n < 0)
		return -errno;
	buf[n] = '\0';
	return 0;
}

void writer_command(pid_t pid, char *ret, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	if (writer_read(AT_FDCWD, path, ret, size) < 0)
		*ret = '\0';
	ret[strcspn(ret, "\n")] = '\0';
}

pid_t writer_process(pid_t tid, bool *ret_in_exec)
{
	/* a long list of groups may precede the line VmExe */
	char path[64], buf[16384] = "";

	if (ret_in_exec)
		*ret_in_exec = false;
	if (tid <= 0)
		return 0;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)tid);
	if (writer_read(AT_FDCWD, path, buf, sizeof(buf)) < 0)
		return 0;
	if (ret_in_exec)
		*ret_in_exec = writer_parse_exec(buf);
	return writer_parse_tgid(buf);
}

/*
 * True if the descriptor NAME in the directory FDS is on the filesystem of MOUNTPOINT, or if that
 * is unknown. Inode numbers don't suffice, because they are hashes of keys (node.h), so two mounts
 * have the same numbers. With AT_STATX_DONT_SYNC and an empty mask, the kernel sends no request to
 * a filesystem.
 */
static bool writer_same_mount(int fds, const char *name, const char *mountpoint)
{
	const int flags = AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT;
	struct statx ours, theirs;

	if (statx(AT_FDCWD, mountpoint, flags, 0, &ours) < 0 ||
	    statx(fds, name, flags, 0, &theirs) < 0)
		return true;
	return ours.stx_dev_major == theirs.stx_dev_major &&
	       ours.stx_dev_minor == theirs.stx_dev_minor;
}

int writer_holds(pid_t pid, uint64_t ino, const char *mountpoint)
{
	cleanup_dir DIR *infos = NULL;
	int fds cleanup_fd = -1;
	const struct dirent *d;
	char path[64];
	int n = 0, held = 0;

	snprintf(path, sizeof(path), "/proc/%d/fdinfo", (int)pid);
	infos = opendir(path);
	if (!infos)
		return -errno;
	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	fds = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	for (errno = 0; (d = readdir(infos)); errno = 0) {
		struct writer_fd fd;
		char buf[1024] = "";
		int err;

		if (d->d_name[0] == '.')
			continue;
		if (++n > WRITER_MAX_FDS)
			return -E2BIG;
		err = writer_read(dirfd(infos), d->d_name, buf, sizeof(buf));
		if (err == -ENOENT)
			continue;
		if (err < 0)
			return err;
		err = writer_parse_fdinfo(buf, &fd);
		if (err < 0)
			return err;
		held += fd.writable && fd.ino == ino &&
			writer_same_mount(fds, d->d_name, mountpoint);
	}
	return errno ? -errno : held;
}

int writer_holds_still(pid_t pid, uint64_t ino, const char *mountpoint)
{
	bool in_exec;

	if (writer_process(pid, &in_exec) == 0)
		return -ESRCH;
	return in_exec ? -EBUSY : writer_holds(pid, ino, mountpoint);
}

int writer_look(pid_t opener, pid_t wrote, uint64_t ino, const char *mountpoint)
{
	int held, holds;

	if (!opener)
		return -ESRCH;
	held = wrote ? writer_holds(wrote, ino, mountpoint) : -ESRCH;
	holds = held > 0 ? 1 : writer_holds_still(opener, ino, mountpoint);
	if (held > 0 || holds > 0)
		return 0;
	return held == -EACCES || holds == -EACCES || held == -EPERM || holds == -EPERM ? -EACCES
											: -ESRCH;
}
