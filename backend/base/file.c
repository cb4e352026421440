/* SPDX-License-Identifier: MIT */
/*
 * Reads and writes whole files.
 *
 * file_write replaces a file atomically: it writes and syncs a temporary file, renames the file,
 * and syncs the directory. file_make creates a file: it renames the temporary file before it syncs
 * the file and the directory. The first sync commits the rename in the same transaction of the file
 * system's journal, so the second sync has nothing to do.
 */
#include "backend/base/file.h"

#include <errno.h>
#include <fcntl.h>

#include "backend/base/disk.h"
#include "spec/base/mem.h"

#define ASIDE_MAX 10000

char *file_path(const char *state_dir, const char *key, const char *name)
{
	return text_print("%s/output/%s%s%s", state_dir, key, name ? "/" : "", name ? name : "");
}

/* --- bytes --- */

/* Write all N bytes of P at OFF, or at FD's offset if OFF is -1. */
static int write_all(int fd, const char *p, size_t n, off_t off)
{
	while (n > 0) {
		ssize_t written =
			off < 0 ? disk_append(fd, p, n) : disk_pwrite(fd, p, n, (uint64_t)off);

		if (written < 0)
			return (int)written;
		if (written == 0)
			/* don't retry a write of 0 bytes forever */
			return -EIO;
		p += written;
		n -= (size_t)written;
		off += off < 0 ? 0 : written;
	}
	return 0;
}

int file_write_all(int fd, const char *p, size_t n)
{
	return write_all(fd, p, n, -1);
}

int file_pwrite_all(int fd, const char *p, size_t n, off_t off)
{
	return write_all(fd, p, n, off);
}

static ssize_t read_at(int fd, void *buf, size_t n, uint64_t off, bool sure)
{
	size_t have = 0;

	while (have < n) {
		ssize_t got = disk_pread(fd, (char *)buf + have, n - have, off + have);

		if (got < 0 && (have == 0 || sure))
			return got;
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

ssize_t file_read_at(int fd, void *buf, size_t n, uint64_t off)
{
	return read_at(fd, buf, n, off, false);
}

ssize_t file_read_sure(int fd, void *buf, size_t n, uint64_t off)
{
	return read_at(fd, buf, n, off, true);
}

int file_read_fd(int fd, size_t max, char **ret, size_t *ret_len)
{
	cleanup_free char *text = NULL;
	struct stat st;
	int err = disk_stat(fd, "", &st);
	ssize_t n;

	if (err < 0)
		return err;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < 0 || (uintmax_t)st.st_size > max)
		return -EFBIG;
	text = mem_grow(NULL, (size_t)st.st_size + 1, 1);
	n = file_read_sure(fd, text, (size_t)st.st_size, 0);
	if (n < 0)
		return (int)n;
	/* N is less than the file's old size if the file was truncated after disk_stat. */
	text[n] = '\0';
	*ret = take_ptr(text);
	*ret_len = (size_t)n;
	return 0;
}

/* --- whole files --- */

int file_read(const char *path, size_t max, char **ret, size_t *ret_len)
{
	cleanup_fd int fd = disk_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK);

	return fd < 0 ? fd : file_read_fd(fd, max, ret, ret_len);
}

int file_read_other(const char *path, size_t max, char **ret, size_t *ret_len)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);

	return fd < 0 ? -errno : file_read_fd(fd, max, ret, ret_len);
}

static int open_dir(const char *dir)
{
	return disk_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY);
}

/*
 * Create the temporary file NAME, and return its descriptor or a negative errno. If NAME exists,
 * unlink it instead of truncating it: after a crash of the machine during a rename, NAME and the
 * final name may refer to the same file.
 */
static int open_new(int at, const char *name)
{
	int flags = O_WRONLY | O_CREAT | O_EXCL;
	int fd = disk_open(at, name, flags);

	if (fd != -EEXIST)
		return fd;
	fd = disk_unlink(at, name);
	return fd < 0 ? fd : disk_open(at, name, flags);
}

bool file_is_full(int err)
{
	return err == -ENOSPC || err == -EDQUOT;
}

/* If REPLACE, the rename may replace an existing FILE, so sync the text before it. */
static int write_file(const char *dir, const char *file, const char *text, size_t len, bool replace)
{
	cleanup_fd int at = open_dir(dir);
	cleanup_fd int fd = -1;
	const char *left;
	char temp[64];
	int err;

	if (at < 0)
		return at;
	snprintf(temp, sizeof(temp), ".%s.new", file);
	left = temp;
	fd = open_new(at, temp);
	err = fd < 0 ? fd : file_write_all(fd, text, len);
	if (!err && replace)
		err = disk_sync(fd);
	if (!err)
		err = disk_rename(at, temp, at, file);
	if (!err && !replace) {
		left = file;
		err = disk_sync(fd);
	}
	if (!err)
		err = disk_sync(at);
	if (err)
		disk_unlink(at, left);
	return err;
}

int file_write(const char *dir, const char *file, const char *text, size_t len)
{
	return write_file(dir, file, text, len, true);
}

int file_make(const char *dir, const char *file, const char *text, size_t len)
{
	return write_file(dir, file, text, len, false);
}

/* Set RET to the name of the file that reserves disk space for FILE. */
static void room_name(const char *file, char ret[64])
{
	snprintf(ret, 64, ".%s.room", file);
}

int file_keep_room(const char *dir, const char *file, size_t len)
{
	cleanup_fd int at = open_dir(dir);
	cleanup_fd int fd = -1;
	char name[64];
	int err;

	if (at < 0)
		return at;
	room_name(file, name);
	fd = disk_open(at, name, O_RDWR | O_CREAT);
	if (fd < 0)
		return fd;
	err = disk_reserve(fd, len, true);
	if (err < 0)
		disk_unlink(at, name);
	return err;
}

void file_free_room(const char *dir, const char *file)
{
	cleanup_free char *path = NULL;
	char name[64];

	room_name(file, name);
	path = text_print("%s/%s", dir, name);
	(void)disk_unlink(AT_FDCWD, path);
}

/* Write TEXT into the reservation for FILE, and rename the reservation to FILE. */
static int write_into_room(int at, const char *file, const char *text, size_t len)
{
	cleanup_fd int fd = -1;
	struct stat st;
	char name[64];
	int err;

	room_name(file, name);
	fd = disk_open(at, name, O_WRONLY);
	if (fd < 0 || disk_stat(fd, "", &st) < 0 || (uintmax_t)st.st_size < len)
		return -ENOSPC;
	err = file_write_all(fd, text, len);
	if (!err)
		err = disk_truncate(fd, len);
	if (!err)
		err = disk_sync(fd);
	if (!err)
		err = disk_rename(at, name, at, file);
	return err ? err : disk_sync(at);
}

int file_write_last(const char *dir, const char *file, const char *text, size_t len)
{
	int err = file_write(dir, file, text, len);
	cleanup_fd int at = open_dir(dir);
	char name[64];

	if (at < 0)
		return err;
	if (file_is_full(err))
		err = write_into_room(at, file, text, len);
	room_name(file, name);
	if (err == 0)
		disk_unlink(at, name);
	return err;
}

/* --- names --- */

bool file_is_dir(int at, const char *name, unsigned char type)
{
	struct stat st;

	if (type != DT_UNKNOWN)
		return type == DT_DIR;
	return disk_stat(at, name, &st) == 0 && S_ISDIR(st.st_mode);
}

int file_sync_dir(const char *dir)
{
	cleanup_fd int fd = open_dir(dir);

	return fd < 0 ? fd : disk_sync(fd);
}

/*
 * Rename FROM to the first unused name of TO, TO.1 and so on. Don't use RENAME_NOREPLACE, because
 * it fails on NFS.
 */
static int move_aside(const char *from, const char *to, char **ret)
{
	for (unsigned i = 0; i < ASIDE_MAX; i++) {
		cleanup_free char *path = i ? text_print("%s.%u", to, i) : text_copy(to);
		struct stat st;
		int err = disk_stat(AT_FDCWD, path, &st);

		if (err == 0)
			continue;
		if (err == -ENOENT)
			err = disk_rename(AT_FDCWD, from, AT_FDCWD, path);
		if (err < 0)
			return err;
		*ret = take_ptr(path);
		return 0;
	}
	return -EEXIST;
}

int file_aside_state(const char *from, const char *state_dir, const char *name, char **ret)
{
	cleanup_free char *dir = text_print("%s/aside", state_dir);
	cleanup_free char *to = text_print("%s/%s", dir, name);
	int err = disk_mkdir(AT_FDCWD, dir);

	return err && err != -EEXIST ? err : move_aside(from, to, ret);
}

bool file_is_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (n == 1) /* DIR is "/" */
		return true;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || path[n] == 0);
}

const char *file_fault(int err)
{
	if (err == -ENOTSUP)
		return "was written by another version of kxfs";
	return err == -EINVAL ? "is damaged" : strerror(-err);
}

bool file_fault_may_pass(int err)
{
	return err != -EINVAL && err != -ENOTSUP && err != -EFBIG && err != -ENOENT &&
	       err != -ELOOP;
}
