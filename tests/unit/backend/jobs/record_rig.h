/* SPDX-License-Identifier: MIT */
/* A state directory with records, for one test. */
#pragma once

#include <sys/stat.h>

#include "backend/base/file.h"
#include "backend/jobs/record_file.h"
#include "spec/base/mem.h"
#include "tests/unit/scratch.h"
#include "tests/unit/unit.h"

#define KEY_A "00000000-0001-8444-8555-666666666666"
#define KEY_B "00000000-0002-8444-8555-666666666666"

static char dir[64];

static inline char *path_of(const char *name)
{
	return text_print("%s/%s", dir, name);
}

static inline int setup(void **state)
{
	cleanup_free char *jobs = NULL;

	strcpy(dir, "/tmp/kxfs-record-XXXXXX");
	assert_non_null(mkdtemp(dir));
	jobs = path_of("jobs");
	assert_int_equal(mkdir(jobs, 0700), 0);
	return 0;
}

static inline int teardown(void **state)
{
	return scratch_remove(dir);
}

static inline bool exists(const char *name)
{
	cleanup_free char *path = path_of(name);

	return access(path, F_OK) == 0;
}

static inline char *read_text(const char *name)
{
	cleanup_free char *path = path_of(name);
	char *text;
	size_t len;

	assert_int_equal(file_read(path, 1 << 20, &text, &len), 0);
	return text;
}

static inline void write_text(const char *name, const char *text)
{
	cleanup_free char *path = path_of(name);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static inline struct spec_head *head_of(const char *key, enum record_state state)
{
	struct spec_head *h = spec_head_new();

	spec_set(&h->key, key);
	spec_set(&h->id, "a");
	h->state = state;
	return h;
}

static const struct record_rest rest_of_test = {"name: a\n", 8, "manifest", 8};
