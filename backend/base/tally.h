/* SPDX-License-Identifier: MIT */
/*
 * A counter of .kxfs/metrics with labels whose values are known only at run time, such as a
 * server's status codes. It has one row for each combination of values; rows are never removed, and
 * there are at most TALLY_ROWS. One thread counts, any thread may print meanwhile, without a lock.
 * All zeros is an empty tally.
 */
#pragma once

#include <stdatomic.h>

#include "spec/base/base.h"

#define TALLY_ROWS   128
#define TALLY_LABELS 3
#define TALLY_TEXT   48 /* bytes of a stored value, with the NUL */

struct tally_row {
	char values[TALLY_LABELS][TALLY_TEXT];
	atomic_ullong n;
};

struct tally {
	atomic_uint n_rows;
	struct tally_row rows[TALLY_ROWS];
};

/*
 * Count one more with VALUES; an unused label has "". When all rows are taken, count a new
 * combination as "other".
 */
void tally_add(struct tally *t, const char *const values[TALLY_LABELS]);
/*
 * Print the samples of kxfs_NAME, without their head. KEYS are the label names; NULL for an unused
 * label.
 */
void tally_print(const struct tally *t, FILE *out, const char *name,
		 const char *const keys[TALLY_LABELS]);
