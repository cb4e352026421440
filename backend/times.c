/* SPDX-License-Identifier: MIT */
/* The format of the times beside a log: see times.h. */
#include "backend/times.h"

#include <endian.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMES_BLOCK 64 /* records read at once */

void times_encode(const struct times_record *r, uint8_t ret[TIMES_RECORD])
{
	uint64_t at = htole64(r->at), ns = htole64((uint64_t)r->ns);

	memcpy(ret, &at, sizeof(at));
	memcpy(ret + sizeof(at), &ns, sizeof(ns));
}

static struct times_record times_decode(const uint8_t bytes[TIMES_RECORD])
{
	uint64_t at, ns;

	memcpy(&at, bytes, sizeof(at));
	memcpy(&ns, bytes + sizeof(at), sizeof(ns));
	return (struct times_record){.at = le64toh(at), .ns = (int64_t)le64toh(ns)};
}

ssize_t times_read(int fd, uint64_t first, struct times_record *ret, size_t n)
{
	uint8_t bytes[TIMES_BLOCK * TIMES_RECORD];
	size_t have = 0;

	while (have < n) {
		size_t want = min_of(n - have, (size_t)TIMES_BLOCK) * TIMES_RECORD;
		ssize_t got = pread(fd, bytes, want, (off_t)((first + have) * TIMES_RECORD));

		if (got < 0)
			return -errno;
		for (ssize_t i = 0; i + TIMES_RECORD <= got; i += TIMES_RECORD) {
			ret[have] = times_decode(bytes + i);
			if (have > 0 && ret[have].at <= ret[have - 1].at)
				return (ssize_t)have;
			have++;
		}
		if (got < (ssize_t)want)
			break;
	}
	return (ssize_t)have;
}

int times_find(int fd, uint64_t at, uint64_t *ret)
{
	struct times_record r = {0};
	uint64_t low = 0, high; /* the first whose place is after AT is in [low, high] */
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	high = (uint64_t)st.st_size / TIMES_RECORD;
	while (low < high) {
		uint64_t mid = low + (high - low) / 2;
		ssize_t n = times_read(fd, mid, &r, 1);

		if (n < 0)
			return (int)n;
		if (n > 0 && r.at <= at)
			low = mid + 1;
		else
			high = mid;
	}
	*ret = low - 1;
	return low > 0 ? 0 : -ENOENT;
}

int times_mend(int fd, uint64_t size)
{
	uint64_t last = 0, keep = 0;
	struct stat st;
	int err = size > 0 ? times_find(fd, size - 1, &last) : -ENOENT;

	if (err == 0)
		keep = (last + 1) * TIMES_RECORD;
	else if (err != -ENOENT)
		return err;
	if (fstat(fd, &st) < 0)
		return -errno;
	return (uint64_t)st.st_size > keep && ftruncate(fd, (off_t)keep) < 0 ? -errno : 0;
}
