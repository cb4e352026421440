/* SPDX-License-Identifier: MIT */
/*
 * The conditions that must be met before kxfs starts a job. Jobs of every kind can have them. A
 * document sets them in scheduler_args, beside the run options. A mount can't set them. kxfs holds
 * the job until its conditions are met (spec/record/held.h).
 */
#pragma once

#include "spec/base/error.h"

struct spec_value;

#define SPEC_MAX_AFTER 100 /* the largest number of jobs that one job can wait for */

enum spec_after { SPEC_AFTER_OK, SPEC_AFTER_ANY, SPEC_AFTER_FAILED };

/* A job to wait for, and the required result. Plain data. */
struct spec_hold_after {
	enum spec_after how;
	char *name; /* as written: the name of a job, or of a file in submit/ */
};

/* The conditions of one job. Plain data. */
struct spec_hold {
	bool hold; /* true if the job does not start before a user releases it */
	/* The job does not start before this time (text as in the document); NULL if not set. */
	char *begin;
	struct spec_hold_after *after;
	size_t n_after;
};

#define SPEC_N_HOLDS 3
/* Return the name of condition I, such as "hold". I must be less than SPEC_N_HOLDS. */
const char *spec_hold_name(size_t i);
/* True if NAME is the name of a condition. */
bool spec_hold_is(const char *name);
/* Read VALUE, a member of scheduler_args whose key names a condition, into H. Add errors to E. */
void spec_hold_read(struct spec_hold *h, const struct spec_value *value, struct spec_errors *e);
bool spec_hold_is_empty(const struct spec_hold *h);
void spec_hold_clear(struct spec_hold *h);

/*
 * Parse the time in TEXT, and set *RET to this time in ns since 1970. "+2h" is relative to NOW.
 * "2026-12-01T08:00:00+01:00" has its own offset. "2026-12-01T08:00:00", "2026-12-01T08:00" and
 * "2026-12-01" are local times of the machine that runs kxfs. LOCAL converts such a local time to
 * ns since 1970: its argument is the result of parsing the time as if it were UTC. A time before
 * 1970 or after 2262 becomes the nearest time that fits in nanoseconds in every time zone. Return
 * false if TEXT has none of these forms.
 */
bool spec_hold_moment(const char *text, int64_t now, int64_t (*local)(int64_t utc), int64_t *ret);
