# SPDX-License-Identifier: MIT
"""Replacements of functions of the C library. preload() returns the environment in which kxfs uses them."""

import harness

CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* The clock KXFS_TEST_CLOCK is ahead by the number of seconds in the file KXFS_TEST_AHEAD. */
int clock_gettime(clockid_t clock, struct timespec *ts)
{
	static int (*real)(clockid_t, struct timespec *);
	FILE *file;
	long ahead = 0;

	if (!real)
		real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	if (real(clock, ts) < 0)
		return -1;
	if (clock == atoi(getenv("KXFS_TEST_CLOCK")) && (file = fopen(getenv("KXFS_TEST_AHEAD"), "re"))) {
		if (fscanf(file, "%ld", &ahead) == 1)
			ts->tv_sec += ahead;
		fclose(file);
	}
	return 0;
}
"""

USERS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pwd.h>
#include <stdlib.h>
#include <unistd.h>

/* Lookups of user names hang while the file KXFS_TEST_HANGS exists. */
int getpwuid_r(uid_t uid, struct passwd *pw, char *buf, size_t size, struct passwd **ret)
{
	int (*real)(uid_t, struct passwd *, char *, size_t, struct passwd **) =
		(int (*)(uid_t, struct passwd *, char *, size_t, struct passwd **))dlsym(RTLD_NEXT, "getpwuid_r");

	while (access(getenv("KXFS_TEST_HANGS"), F_OK) == 0)
		usleep(10000);
	return real(uid, pw, buf, size, ret);
}
"""


def preload(directory, text, **variables):
    """Build a library of the functions in TEXT in DIRECTORY. Return the environment of a program that uses them;
    they read VARIABLES from it."""
    source, library = directory / "preloaded.c", directory / "preloaded.so"
    source.write_text(text)
    harness.run(["gcc", "-shared", "-fPIC", "-O1", "-o", str(library), str(source), "-ldl"])
    directory.chmod(0o755)
    return {"LD_PRELOAD": str(library), "ASAN_OPTIONS": "verify_asan_link_order=0",
            **{name: str(value) for name, value in variables.items()}}


class Clock:
    """A clock (time.CLOCK_REALTIME or time.CLOCK_MONOTONIC) that a test can set, for processes that start with ENV."""

    def __init__(self, directory, clock):
        self.file, self.ahead = directory / "ahead", 0
        self.env = preload(directory, CLOCK, KXFS_TEST_CLOCK=clock, KXFS_TEST_AHEAD=self.file)

    def set(self, seconds):
        """Set the clock SECONDS ahead of the clock of the machine."""
        new = self.file.with_suffix(".new")
        new.write_text(str(seconds))
        new.rename(self.file)
        self.ahead = seconds
