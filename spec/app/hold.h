/* SPDX-License-Identifier: MIT */
/*
 * The conditions that must be met before kxfs starts a job of any kind. A document sets them in
 * scheduler_args, beside the run options; a mount can't set them. See also spec/record/held.h.
 */
#pragma once

#include "spec/base/error.h"

struct spec_value;

#define SPEC_MAX_AFTER 100 /* jobs that one job can wait for */

enum spec_after { SPEC_AFTER_OK, SPEC_AFTER_ANY, SPEC_AFTER_FAILED };

/* A job to wait for, and its required result. Plain data. */
struct spec_hold_after {
	enum spec_after how;
	char *name; /* of a job, or of a file in submit/ */
};

/* Plain data. */
struct spec_hold {
	bool hold;   /* the job waits until a user releases it */
	char *begin; /* the earliest time of the start, as written; NULL if not set */
	struct spec_hold_after *after;
	size_t n_after;
};

#define SPEC_N_HOLDS 3
const char *spec_hold_name(size_t i);
bool spec_hold_is(const char *name);
/* Read VALUE, a member of scheduler_args whose key names a condition, into H. Add errors to E. */
void spec_hold_read(struct spec_hold *h, const struct spec_value *value, struct spec_errors *e);
bool spec_hold_is_empty(const struct spec_hold *h);
void spec_hold_clear(struct spec_hold *h);

/*
 * Parse the time in TEXT, and set *RET to ns since 1970. "+2h" is relative to NOW.
 * "2026-12-01T08:00:00+01:00" has its own offset. "2026-12-01T08:00:00", "2026-12-01T08:00" and
 * "2026-12-01" are local times: they are parsed as UTC, and LOCAL converts the result. Times before
 * 1970 or after 2262 become the nearest valid time. Return false if TEXT has none of these forms.
 */
bool spec_hold_moment(const char *text, int64_t now, int64_t (*local)(int64_t utc), int64_t *ret);
