/* SPDX-License-Identifier: MIT */
/*
 * Times beside a log, of any bytes: what is read goes on in order, what is found is not after what was looked for,
 * and mending leaves whole records, and no more of them than there were.
 */
#include <assert.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/times.h"

#define READ_MAX 100

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint64_t records(int fd)
{
	struct stat st;

	assert(fstat(fd, &st) == 0);
	return (uint64_t)st.st_size / TIMES_RECORD;
}

static void look(int fd, uint64_t at)
{
	struct times_record v[READ_MAX];
	uint64_t i;
	int err = times_find(fd, at, &i);
	ssize_t n;

	assert(err == 0 || err == -ENOENT);
	if (err < 0)
		return;
	n = times_read(fd, i, v, READ_MAX);
	assert(n > 0 && v[0].at <= at);
	for (ssize_t k = 1; k < n; k++)
		assert(v[k].at > v[k - 1].at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t places[] = {0, 1, 100, 1u << 20, UINT64_MAX};
	int fd = memfd_create("times", MFD_CLOEXEC);
	uint64_t n = size / TIMES_RECORD;
	struct stat st;

	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	for (size_t i = array_size(places); i-- > 0;) {
		look(fd, places[i]);
		assert(times_mend(fd, places[i]) == 0);
		assert(fstat(fd, &st) == 0 && st.st_size % TIMES_RECORD == 0);
		assert(records(fd) <= n);
		n = records(fd);
	}
	assert(n == 0);
	close(fd);
	return 0;
}
