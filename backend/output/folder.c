/* SPDX-License-Identifier: MIT */
/* The folder of a job; see folder.h. */
#include "backend/output/folder.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "backend/base/disk.h"

bool folder_path(char ret[FOLDER_PATH_MAX], const char *id, const char *sub, const char *name)
{
	int n = snprintf(ret, FOLDER_PATH_MAX, "%s/%s%s%s", id, sub ? sub : "", sub ? "/" : "",
			 name);

	return n < FOLDER_PATH_MAX;
}

int folder_open(int dir_fd, const char *id, const char *sub, const char *name, int flags)
{
	char path[FOLDER_PATH_MAX];

	if (!folder_path(path, id, sub, name))
		return -ENAMETOOLONG;
	if ((flags & O_ACCMODE) == O_RDONLY)
		flags |= O_NONBLOCK; /* never hang in open, even if NAME is a FIFO */
	return disk_open(dir_fd, path, flags);
}

int folder_make_one(int dir_fd, const char *name)
{
	int err = disk_mkdir(dir_fd, name);

	return err < 0 ? (err == -EEXIST ? 0 : err) : disk_chmod(dir_fd, name, 0700);
}

int folder_make(int dir_fd, const char *id)
{
	static const char *const subs[] = {"logs", "lines"};
	char path[FOLDER_PATH_MAX];
	int err = folder_make_one(dir_fd, id);

	for (size_t i = 0; err == 0 && i < array_size(subs); i++)
		err = folder_path(path, id, NULL, subs[i]) ? folder_make_one(dir_fd, path)
							   : -ENAMETOOLONG;
	return err;
}

int folder_open_log(int dir_fd, const char *id, const char *key, uint64_t *ret_size)
{
	cleanup_fd int fd =
		folder_open(dir_fd, id, "logs", key, O_WRONLY | O_APPEND | O_CREAT | O_NONBLOCK);
	struct stat st;
	int err;

	if (fd < 0)
		return fd;
	err = disk_stat(fd, "", &st);
	if (err == 0 && !S_ISREG(st.st_mode))
		err = -EINVAL;
	if (err == 0 && (st.st_mode & 07777) != 0600)
		err = disk_chmod(fd, "", 0600);
	if (err < 0)
		return err;
	if (ret_size)
		*ret_size = (uint64_t)st.st_size;
	return take_fd(&fd);
}
