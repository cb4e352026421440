/* SPDX-License-Identifier: MIT */
/*
 * The folder of a job's output, STATE/output/ID, and its files. DIR_FD is STATE/output. Functions
 * may wait for the disk, and do not follow links. They return close-on-exec descriptors, or
 * negative errnos. Any thread.
 */
#pragma once

#include <endian.h>

#include "spec/base/base.h"

#define FOLDER_PATH_MAX 600

/* Set RET to "ID/NAME", or to "ID/SUB/NAME" if SUB is not NULL. Return false if it is too long. */
bool folder_path(char ret[FOLDER_PATH_MAX], const char *id, const char *sub, const char *name);
/* Open the file of folder_path. If FLAGS has O_CREAT, create a missing file with mode 0600. */
int folder_open(int dir_fd, const char *id, const char *sub, const char *name, int flags);
/* Create ID, ID/logs and ID/lines if needed. */
int folder_make(int dir_fd, const char *id);
/* Create the folder NAME if needed, with mode 0700, whatever the umask is. */
int folder_make_one(int dir_fd, const char *name);
/* Open the log KEY for appending, and create it if needed. RET_SIZE may be NULL. */
int folder_open_log(int dir_fd, const char *id, const char *key, uint64_t *ret_size);

/* Little-endian numbers in files. They need not be aligned. */
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
