/* SPDX-License-Identifier: MIT */
/*
 * When a job begins: what its scheduler_args say beside run options, in every kind of job. No mount has these as
 * options. kxfs itself holds such a job until its conditions hold (spec/record/held.h).
 */
#pragma once

#include "spec/base/error.h"

struct spec_value;

#define SPEC_MAX_AFTER 100 /* jobs that one waits for */

enum spec_after { SPEC_AFTER_OK, SPEC_AFTER_ANY, SPEC_AFTER_FAILED };

/* A job that is waited for, and how that has to end. Plain data. */
struct spec_hold_after {
	enum spec_after how;
	char *name; /* as it is written: of a job, or of a file of submit/ */
};

/* Plain data. */
struct spec_hold {
	bool hold;	 /* until somebody releases it */
	char *begin;	 /* as it is written; NULL: none */
	char *singleton; /* one job of this name at a time; NULL: none */
	struct spec_hold_after *after;
	size_t n_after;
};

#define SPEC_N_HOLDS 4
/* "hold", ...: I is less than SPEC_N_HOLDS. */
const char *spec_hold_name(size_t i);
/* Is NAME one of these? */
bool spec_hold_is(const char *name);
/* Take the member VALUE of scheduler_args, which is one of these. 0, or an errno with errors in E. */
int spec_hold_read(struct spec_hold *h, const struct spec_value *value, struct spec_errors *e);
bool spec_hold_is_empty(const struct spec_hold *h);
void spec_hold_clear(struct spec_hold *h);

/*
 * The moment (ns) that TEXT means: "+2h" from NOW on, or "2026-12-01T08:00:00+01:00"; "2026-12-01T08:00:00",
 * "2026-12-01T08:00" and "2026-12-01" are of the place where kxfs runs: LOCAL is given the moment at which it is so
 * late in UTC, and gives the one at which it is here. False: TEXT is none of these.
 */
bool spec_hold_moment(const char *text, int64_t now, int64_t (*local)(int64_t utc), int64_t *ret);
