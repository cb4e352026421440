/* SPDX-License-Identifier: MIT */
/* What the fakes of a test were asked for, as one text, in the order in which they were asked. */
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

	va_start(ap, fmt);
	n += (size_t)snprintf(noted + n, sizeof(noted) - n, n ? ", " : "");
	vsnprintf(noted + n, sizeof(noted) - n, fmt, ap);
	va_end(ap);
}

static void forget_noted(void)
{
	noted[0] = '\0';
}

/* What was noted since the last call of this function, or since it was last forgotten, is WANT. */
static void assert_done(const char *want)
{
	assert_string_equal(noted, want);
	forget_noted();
}
