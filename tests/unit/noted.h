/* SPDX-License-Identifier: MIT */
/* Collects the calls that a test's fakes receive, in order, as one text. */
#pragma once

#include <stdio.h>
#include <string.h>

#include "spec/base/base.h"
#include "tests/unit/unit.h"

static char noted[1024];

static void printf_like(1, 2) note(const char *fmt, ...)
{
	size_t n = strlen(noted);
	va_list ap;

	if (n + 2 >= sizeof(noted)) /* it is full */
		return;
	va_start(ap, fmt);
	n += (size_t)snprintf(noted + n, sizeof(noted) - n, n ? ", " : "");
	vsnprintf(noted + n, sizeof(noted) - n, fmt, ap);
	va_end(ap);
}

static void forget_noted(void)
{
	noted[0] = '\0';
}

/* Assert that the text noted since the last call, or since forget_noted, is WANT. */
static void assert_done(const char *want)
{
	assert_string_equal(noted, want);
	forget_noted();
}
