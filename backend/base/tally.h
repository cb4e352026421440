/* SPDX-License-Identifier: MIT */
/*
 * A counter of .kxfs/metrics with labels whose values come up while kxfs runs, such as the codes that a
 * server answers with. A row for each combination, never removed, and not more than TALLY_ROWS. One thread
 * counts, any may print meanwhile; no lock. All zeros is an empty one.
 */
#pragma once

#include <stdatomic.h>

#include "spec/base/base.h"

#define TALLY_ROWS   128
#define TALLY_LABELS 3
#define TALLY_TEXT   48 /* bytes of a value that are kept, with the NUL */

struct tally_row {
	char values[TALLY_LABELS][TALLY_TEXT];
	atomic_ullong n;
};

struct tally {
	atomic_uint n_rows;
	struct tally_row rows[TALLY_ROWS];
};

/*
 * Count one more with VALUES; a label that is not used has "". When all rows are taken, a new combination is counted as
 * "other".
 */
void tally_add(struct tally *t, const char *const values[TALLY_LABELS]);
/* Print the samples of kxfs_NAME, without their head; KEYS are the names of its labels, NULL: not used. */
void tally_print(const struct tally *t, FILE *out, const char *name,
		 const char *const keys[TALLY_LABELS]);
