/* SPDX-License-Identifier: MIT */
/* What the tests of S3 need: a loop without time, servers without sockets, and an environment that the test decides. */
#ifndef KXFS_TESTS_S3_RIG_H
#define KXFS_TESTS_S3_RIG_H

#include "tests/unit/backend/client/fake_net.h"

#include <errno.h>
#include <ftw.h>
#include <sys/stat.h>

#include "spec/base/mem.h"
#include "tests/unit/scratch.h"

static char rig_dir[64];

static inline int rig_setup(void **state)
{
	static const char *const variables[] = {
		"AWS_ACCESS_KEY_ID",
		"AWS_SECRET_ACCESS_KEY",
		"AWS_SESSION_TOKEN",
		"AWS_PROFILE",
		"AWS_ROLE_ARN",
		"AWS_ROLE_SESSION_NAME",
		"AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_ENDPOINT_URL_STS",
		"AWS_REGION",
		"AWS_DEFAULT_REGION",
		"AWS_CA_BUNDLE",
	};

	for (size_t i = 0; i < array_size(variables); i++)
		unsetenv(variables[i]);
	strcpy(rig_dir, "/tmp/kxfs-s3-XXXXXX");
	assert_non_null(mkdtemp(rig_dir));
	return 0;
}

static inline int rig_teardown(void **state)
{
	fake_forget_timers();
	return scratch_remove(rig_dir);
}

/* A file of the test's own, and VARIABLE names it. */
static inline void rig_write(const char *name, const char *variable, const char *text)
{
	cleanup_free char *path = text_print("%s/%s", rig_dir, name);
	cleanup_file FILE *out = fopen(path, "we");

	assert_non_null(out);
	fputs(text, out);
	setenv(variable, path, 1);
}

static inline void rig_remove(const char *name)
{
	cleanup_free char *path = text_print("%s/%s", rig_dir, name);

	assert_int_equal(unlink(path), 0);
}

#endif
