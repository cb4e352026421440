/* SPDX-License-Identifier: MIT */
/*
 * Files in the state directory: written to a temporary name, synced, renamed, and the directory
 * synced.
 */
#include "backend/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#define ASIDE_MAX 10000

char *file_path(const char *state_dir, const char *id, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/jobs/%s%s%s", state_dir, id, name ? "/" : "", name ? name : "") < 0)
		return NULL;
	return path;
}

int file_write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t written = write(fd, p, n);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		p += written;
		n -= (size_t)written;
	}
	return 0;
}

int file_sync_dir(const char *dir)
{
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int file_write(const char *dir, const char *file, const char *text, size_t len)
{
	cleanup_fd int at = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_fd int fd = -1;
	char temp[64];
	int err;

	if (at < 0)
		return -errno;
	snprintf(temp, sizeof(temp), ".%s.new", file);
	fd = openat(at, temp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	err = file_write_all(fd, text, len);
	if (err == 0 && fsync(fd) < 0)
		err = -errno;
	if (err == 0 && renameat(at, temp, at, file) < 0)
		err = -errno;
	if (err == 0 && fsync(at) < 0)
		err = -errno;
	if (err < 0)
		unlinkat(at, temp, 0);
	return err;
}

static int read_file(const char *path, int flags, size_t max, char **ret, size_t *ret_len)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | flags);
	cleanup_free char *text = NULL;
	size_t len = 0, room;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return -EINVAL;
	if (st.st_size < 0 || (uintmax_t)st.st_size > max)
		return -EFBIG;
	room = (size_t)st.st_size;
	text = malloc(room + 1);
	if (!text)
		return -ENOMEM;
	while (len < room) {
		ssize_t n = read(fd, text + len, room - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	text[len] = '\0';
	*ret = take_ptr(text);
	*ret_len = len;
	return 0;
}

int file_read(const char *path, size_t max, char **ret, size_t *ret_len)
{
	return read_file(path, O_NOFOLLOW, max, ret, ret_len);
}

int file_read_other(const char *path, size_t max, char **ret, size_t *ret_len)
{
	return read_file(path, 0, max, ret, ret_len);
}

/* Not renameat2 with RENAME_NOREPLACE, which NFS does not have. */
int file_aside(const char *from, const char *to, char **ret)
{
	for (unsigned i = 0; i < ASIDE_MAX; i++) {
		cleanup_free char *place = NULL;

		if ((i ? asprintf(&place, "%s.%u", to, i) : asprintf(&place, "%s", to)) < 0) {
			place = NULL;
			return -ENOMEM;
		}
		if (faccessat(AT_FDCWD, place, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		if (errno != ENOENT || rename(from, place) < 0)
			return -errno;
		*ret = take_ptr(place);
		return 0;
	}
	return -EEXIST;
}

const char *file_fault(int err)
{
	if (err == -ENOTSUP)
		return "was written by another version of kxfs";
	return err == -EINVAL ? "is damaged" : strerror(-err);
}
