/* SPDX-License-Identifier: MIT */
/*
 * Any bytes as a table of lines. Records are read in order. A search returns no record after the
 * requested position. A repaired table covers the whole log, and nothing beyond it.
 */
#include "fuzz.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "backend/output/lines.h"

#define LOG_SIZE 1000

static void look(int fd, uint64_t weight, uint64_t place)
{
	struct lines_record found, next;
	struct lines_reader r;
	int err;

	lines_open(&r, fd);
	err = lines_find(&r, weight, place, &found);
	assert(err == 0 || err == -ENOENT);
	if (err < 0)
		return;
	assert(found.line.at + weight * found.number <= place);
	for (unsigned i = 0; i < 2000 && lines_next(&r, &next) == 0; i++) {
		assert(next.line.at > found.line.at && next.number > found.number);
		assert(next.line.at - found.line.at >= next.number - found.number);
		found = next;
	}
	assert(lines_next(&r, &next) == 0 || lines_next(&r, &next) == -ENOENT);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint64_t places[] = {UINT64_MAX, LOG_SIZE, 100, 1, 0};
	int fd = memfd_create("lines", MFD_CLOEXEC);
	int log = memfd_create("log", MFD_CLOEXEC);
	struct lines_encoder e;
	char text[LOG_SIZE];

	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = i % 7 == 3 ? '\n' : 'x';
	assert(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	assert(log >= 0 && write(log, text, sizeof(text)) == (ssize_t)sizeof(text));
	for (size_t i = 0; i < array_size(places); i++) {
		look(fd, 0, places[i]);
		look(fd, 28, places[i]);
	}
	for (size_t i = 1; i < array_size(places); i++) {
		assert(lines_mend(fd, log, places[i], &e) == 0);
		assert(e.size == places[i] && lseek(fd, 0, SEEK_END) == (off_t)e.table);
		assert(!e.any || e.last.line.at < e.size);
		look(fd, 0, UINT64_MAX);
	}
	assert(e.table == 0);
	close(fd);
	close(log);
	return 0;
}
