/* SPDX-License-Identifier: MIT */
/*
 * The folder of a job, STATE/jobs/ID, and the files in it. DIR_FD is STATE/jobs. Any thread; all may wait for the
 * disk. Nothing here follows a link. Descriptors are close-on-exec; errors are negative errnos.
 */
#pragma once

#include "spec/base/base.h"

#define FOLDER_PATH_MAX 600

/* "ID/NAME", or "ID/SUB/NAME" if SUB is not NULL. False: too long. */
bool folder_path(char ret[FOLDER_PATH_MAX], const char *id, const char *sub, const char *name);
/* The file of that name; with O_CREAT it is made, for its owner alone. */
int folder_open(int dir_fd, const char *id, const char *sub, const char *name, int flags);
/* All of it. -EFBIG: it is larger than any that kxfs has written. */
int folder_read(int dir_fd, const char *id, const char *name, char **ret, size_t *ret_len);
/* ID, ID/logs and ID/lines, where they are not there. */
int folder_make(int dir_fd, const char *id);
/* The folder NAME in DIR, for its owner alone whatever the umask. */
int folder_make_one(int dir_fd, const char *name);
/* The log KEY for appending, made if it is not there; *RET_SIZE (NULL: not wanted) is how many bytes it has. */
int folder_open_log(int dir_fd, const char *id, const char *key, uint64_t *ret_size);
