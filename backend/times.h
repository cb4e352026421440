/* SPDX-License-Identifier: MIT */
/*
 * The times of a fetched log's lines, kept beside it (STATE/jobs/ID/times/KEY) until the merged log, which is
 * in order of time, has all of it. The file is an array of TIMES_RECORD bytes each, little-endian: where a line
 * begins in the log, and its time in ns since 1970. A line without a record has the time of the one before.
 * A record is written before the bytes that it is of. Private to the spool; any thread; may wait for
 * the disk.
 */
#ifndef KXFS_BACKEND_TIMES_H
#define KXFS_BACKEND_TIMES_H

#include "spec/base.h"

#define TIMES_RECORD 16

struct times_record {
	uint64_t at;
	int64_t ns;
};

void times_encode(const struct times_record *r, uint8_t ret[TIMES_RECORD]);
/*
 * Records of FD from number FIRST on, at most N, in the order of their places: what is not is not
 * believed, and ends them. How many, or a negative errno.
 */
ssize_t times_read(int fd, uint64_t first, struct times_record *ret, size_t n);
/* The number of the last record whose place is not after AT; -ENOENT: there is none. */
int times_find(int fd, uint64_t at, uint64_t *ret);
/* Cut off what was torn, and records of bytes that were never written: the log has SIZE of them. */
int times_mend(int fd, uint64_t size);

#endif
