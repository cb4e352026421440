/* SPDX-License-Identifier: MIT */
/* Reads the jobs in the list of a day, as snapshots that are brief. Pure. */
#pragma once

#include "spec/job/job.h"

/* Is NAME a day, "2026-11-26"? */
bool day_is(const char *name);

/* What was read of a day. Plain data. */
struct day_list {
	char digest[65]; /* digest of all bytes of its lists */
	/* In the order of their creation; each has an id and a uid of its own. */
	const struct spec_job **jobs;
	size_t n;
	size_t passed_over; /* lines that are no job of this day */
};

void day_clear(struct day_list *list);
/* Add the lines of TEXT, which may be anything, to LIST. day_settle is called after the last text. */
void day_add(struct day_list *list, const char *text, size_t len);
/* Order LIST. Of two jobs with one id the older is called ID~UID8. */
void day_settle(struct day_list *list);
