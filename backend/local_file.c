/* SPDX-License-Identifier: MIT */
/*
 * The local backend's files in the state directory: a job's record and AppDef, each replaced in
 * one synced step, so that a crash or a full disk leaves the old or the new one, never a part.
 * Any thread; all of it may wait for the disk.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "backend/local.h"

/* A record of the most replicas with the largest AppDef is a fraction of this. */
#define RECORD_MAX (64u << 20)

char *local_path(const char *state_dir, const char *id, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/jobs/%s%s%s", state_dir, id, name ? "/" : "", name ? name : "") < 0)
		return NULL;
	return path;
}

static int write_all(int fd, const char *p, size_t n)
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

int local_dir_sync(const char *dir)
{
	cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 || fsync(fd) < 0 ? -errno : 0;
}

int local_file_write(const char *dir, const char *file, const char *text, size_t len)
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
	err = write_all(fd, text, len);
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

int local_file_read(const char *path, size_t max, char **ret, size_t *ret_len)
{
	cleanup_fd int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
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

int local_record_read(const char *state_dir, const char *id, struct spec_record **ret)
{
	cleanup_free char *path = local_path(state_dir, id, "job.json");
	cleanup(local_record_freep) struct spec_record *rec = NULL;
	cleanup_free char *text = NULL;
	size_t len = 0;
	int err;

	if (!path)
		return -ENOMEM;
	err = local_file_read(path, RECORD_MAX, &text, &len);
	if (err == 0)
		err = spec_record_parse(text, len, &rec);
	if (err < 0)
		return err;
	/* A directory that was copied by hand is not this job. */
	if (!streq(rec->id, id))
		return -EINVAL;
	*ret = take_ptr(rec);
	return 0;
}

int local_record_write(const char *state_dir, const struct spec_record *rec)
{
	cleanup_free char *dir = local_path(state_dir, rec->id, NULL);
	cleanup_free char *text = spec_record_text(rec);

	if (!dir || !text)
		return -ENOMEM;
	return local_file_write(dir, "job.json", text, strlen(text));
}

void local_say(char **field, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list args;
	int n;

	va_start(args, fmt);
	n = vasprintf(&text, fmt, args);
	va_end(args);
	if (n < 0) {
		text = NULL;
		return;
	}
	if (spec_set(field, text) < 0)
		diag(DIAG_DEBUG, "no memory for the text \"%s\"", text);
}
