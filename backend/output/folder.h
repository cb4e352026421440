/* SPDX-License-Identifier: MIT */
/*
 * The folder of a job's output, STATE/output/ID, and the files in it. DIR_FD is STATE/output. Any
 * thread. All functions may wait for the disk, and do not follow links. Returned descriptors are
 * close-on-exec. Errors are negative errnos.
 */
#pragma once

#include <endian.h>

#include "spec/base/base.h"

#define FOLDER_PATH_MAX 600

/* Set RET to "ID/NAME", or to "ID/SUB/NAME" if SUB is not NULL. Return false if it is too long. */
bool folder_path(char ret[FOLDER_PATH_MAX], const char *id, const char *sub, const char *name);
/*
 * Open the file whose path folder_path makes. If FLAGS has O_CREAT and the file does not exist,
 * create it with mode 0600.
 */
int folder_open(int dir_fd, const char *id, const char *sub, const char *name, int flags);
/* Create ID, ID/logs and ID/lines if needed. */
int folder_make(int dir_fd, const char *id);
/* Create the folder NAME in DIR_FD with mode 0700, whatever the umask is, if it does not exist. */
int folder_make_one(int dir_fd, const char *name);
/*
 * Open the log KEY for appending, and create it if needed. Set *RET_SIZE to the size of the log.
 * RET_SIZE may be NULL.
 */
int folder_open_log(int dir_fd, const char *id, const char *key, uint64_t *ret_size);

/* Write and read numbers in files. Numbers are little-endian, and need not be aligned. */
static inline void bytes_put32(uint8_t *at, uint32_t v)
{
	v = htole32(v);
	memcpy(at, &v, sizeof(v));
}

static inline void bytes_put64(uint8_t *at, uint64_t v)
{
	v = htole64(v);
	memcpy(at, &v, sizeof(v));
}

static inline uint32_t bytes_get32(const uint8_t *at)
{
	uint32_t v;

	memcpy(&v, at, sizeof(v));
	return le32toh(v);
}

static inline uint64_t bytes_get64(const uint8_t *at)
{
	uint64_t v;

	memcpy(&v, at, sizeof(v));
	return le64toh(v);
}
