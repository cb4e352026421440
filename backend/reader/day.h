/* SPDX-License-Identifier: MIT */
/* The jobs that the list of a day has, as snapshots that are brief. Pure. */
#pragma once

#include "spec/job/job.h"

/* Is NAME a day, "2026-11-26"? */
bool day_is(const char *name);

/* Plain data: what was read of a day. */
struct day_list {
	char digest[65];	      /* of all its bytes */
	const struct spec_job **jobs; /* by their creation; each has an id and a uid of its own */
	size_t n;
	size_t passed_over; /* lines that are no such job */
};

void day_clear(struct day_list *list);
/* The lines of TEXT, which may be anything, are added to LIST; day_settle follows the last. */
void day_add(struct day_list *list, const char *text, size_t len);
/* Order them; one whose id another has is called ID~UID8, the older of two. */
void day_settle(struct day_list *list);
