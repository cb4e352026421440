/* SPDX-License-Identifier: MIT */
/* Prints the start times of a job's states as a text that a test can compare. */
#pragma once

#include "spec/base/time.h"
#include "spec/job/job.h"
#include "tests/unit/unit.h"

/* Assert that T is WANT, with a line such as "09:11:24 PENDING Pending" for each state. */
static inline void assert_transitions(const struct spec_transitions *t, const char *want)
{
	char text[4096] = "", time[32];
	size_t n = 0;

	for (size_t i = 0; i < t->n; i++) {
		spec_time_text(t->v[i].time, time);
		n += (size_t)snprintf(text + n, sizeof(text) - n, "%.8s %s %s\n", time + 11,
				      spec_state_name(t->v[i].state), t->v[i].phase);
	}
	assert_string_equal(text, want);
}
