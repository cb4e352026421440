/* SPDX-License-Identifier: MIT */
/*
 * The conditions that must be met before kxfs launches a job. They are the same for all kinds of
 * jobs. A document sets them in scheduler_args, beside the run options; a mount can't set them. See
 * also spec/record/held.h.
 */
#pragma once

#include "spec/base/error.h"

struct spec_value;

#define SPEC_MAX_AFTER 100 /* jobs that one job can wait for */

enum spec_after { SPEC_AFTER_OK, SPEC_AFTER_ANY, SPEC_AFTER_FAILED };

enum spec_wait { SPEC_WAIT_OPEN, SPEC_WAIT_MET, SPEC_WAIT_NEVER };

/*
 * A job to wait for. Its uid or its submission identifies the job, whichever is known. The
 * submission is "" if the job was not submitted through this state directory. Plain data; the texts
 * are set with spec_set.
 */
struct spec_held_after {
	unsigned how; /* enum spec_after: the required result */
	/* the job's id; until kxfs has found the job, perhaps the name of a file in submit/ */
	char *id;
	char *uid, *submission;
	/* enum spec_wait. OPEN: the job has not ended. MET: its result is HOW. NEVER: it is not. */
	unsigned wait;
	char *end; /* if WAIT is NEVER: how the job ended, such as "failed"; else "" */
};

/* Plain data. */
struct spec_held {
	bool hold;     /* the job waits until a user releases it */
	int64_t begin; /* earliest time of the launch, in ns since 1970; 0 for any time */
	struct spec_held_after *after;
	size_t n_after;
};

/* Append a job to wait for, with empty texts, to H, and return it. */
struct spec_held_after *spec_held_add(struct spec_held *h);
void spec_held_free(struct spec_held *h);
define_cleanup(spec_held_freep, struct spec_held *, spec_held_free)

#define SPEC_N_HOLDS 3
const char *spec_hold_name(size_t i);
bool spec_hold_is(const char *name);
/*
 * Read VALUE, a member of scheduler_args, into H. Ignore VALUE if its key is not the name of a
 * condition. NOW and LOCAL are as in spec_hold_moment. Add errors to E.
 */
void spec_hold_read(struct spec_held *h, const struct spec_value *value, int64_t now,
		    int64_t (*local)(int64_t utc), struct spec_errors *e);

/*
 * Parse the time TEXT, and set *RET to the time in ns since 1970. "+2h" is relative to NOW.
 * "2026-12-01T08:00:00+01:00" has its own offset. "2026-12-01T08:00:00", "2026-12-01T08:00" and
 * "2026-12-01" are local times: they are parsed as UTC, and LOCAL converts the result. Times before
 * 1970 or after 2262 become the nearest valid time. Return false if TEXT has none of these forms.
 * LOCAL may be NULL if the caller only checks TEXT.
 */
bool spec_hold_moment(const char *text, int64_t now, int64_t (*local)(int64_t utc), int64_t *ret);
