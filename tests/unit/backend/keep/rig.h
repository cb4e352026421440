/* SPDX-License-Identifier: MIT */
/* A loop, an archive in a directory of the test's, and its files. */
#pragma once

#include <sys/stat.h>

#include "backend/base/file.h"
#include "spec/base/mem.h"
#include "tests/unit/backend/base/loop_rig.h"

static char base[64];

static inline int setup_base(void **state)
{
	strcpy(base, "/tmp/kxfs-keep-XXXXXX");
	assert_non_null(mkdtemp(base));
	return setup_started(state);
}

static inline int teardown_base(void **state)
{
	cleanup_free char *remove = text_print("rm -rf %s", base);

	teardown(state);
	return system(remove); /* NOLINT(cert-env33-c) */
}

static inline void shell(const char *fmt, ...) printf_like(1, 2);
static inline void shell(const char *fmt, ...)
{
	cleanup_free char *words = NULL, *command = NULL;
	va_list ap;

	va_start(ap, fmt);
	words = text_vprint(fmt, ap);
	va_end(ap);
	command = text_print("cd %s && %s", base, words);
	assert_int_equal(system(command), 0); /* NOLINT(cert-env33-c) */
}

/* Assert that the file NAME holds TEXT; NULL: it is not there. */
static inline void assert_file(const char *name, const char *text)
{
	cleanup_free char *path = text_print("%s/%s", base, name), *got = NULL;
	size_t len;
	int err = file_read(path, 64 << 20, &got, &len);

	if (!text) {
		assert_int_equal(err, -ENOENT);
		return;
	}
	assert_int_equal(err, 0);
	assert_string_equal(got, text);
}
